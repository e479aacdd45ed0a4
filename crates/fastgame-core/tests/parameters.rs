//! Parameters out of range: a clear error that says what was given and what is allowed; nothing is built.

use fastgame_core::{
    Builder, ContinualVector, Error, Gdp, Invalid, MAX_HORIZON, MAX_WEIGHT, Mechanism, OnExcess, Unit, Zcdp,
};

fn builder() -> Builder {
    ContinualVector::builder(100, Zcdp::new(0.5).unwrap()).cells(3)
}

/// The error of building (the plan's is the same), which has to name the parameter and show these texts.
fn refused(builder: &Builder, parameter: &str, texts: &[&str]) {
    let error = builder.build().expect_err(parameter);
    assert!(matches!(error, Error::Parameter { name, .. } if name == parameter), "{error}");
    for text in texts {
        assert!(error.to_string().contains(text), "no \"{text}\" in \"{error}\"");
    }
}

#[test]
fn horizons_out_of_range_are_refused() {
    let with = |horizon| ContinualVector::builder(horizon, Zcdp::new(0.5).unwrap()).cells(3);
    refused(&with(0), "horizon", &["from 1 to 2^62", "0 was given"]);
    refused(&with(MAX_HORIZON + 1), "horizon", &["from 1 to 2^62", "4611686018427387905 was given"]);
    refused(&with(u64::MAX), "horizon", &["18446744073709551615 was given"]);
    for horizon in [1, 2, 3, MAX_HORIZON] {
        assert_eq!(with(horizon).build().unwrap().horizon(), horizon);
    }
}

#[test]
fn sizes_that_are_zero_or_beyond_memory_are_refused() {
    let blocks = |lengths: &[usize]| ContinualVector::builder(100, Zcdp::new(0.5).unwrap()).blocks(lengths);
    refused(&builder().cells(0), "size", &["at least 1", "0 was given"]);
    refused(&blocks(&[]), "size", &["at least 1", "0 was given"]);
    refused(&blocks(&[4, 0, 2]), "size", &["in every block", "6 was given"]);
    refused(&blocks(&[usize::MAX, 2]), "size", &["fits in memory", "was given"]);
    for cells in [usize::MAX, usize::MAX / 2, usize::MAX / 8, usize::MAX / 16, usize::MAX / 64] {
        refused(&builder().cells(cells), "size", &["fits in memory", &format!("{cells} was given")]);
    }
    assert_eq!(blocks(&[4, 1, 2]).build().unwrap().size(), 7);
}

#[test]
fn budgets_out_of_range_are_refused() {
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Zcdp::new(bad).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "rho", .. }), "{error}");
        assert!(error.to_string().contains(&format!("{bad:?} was given")), "{error}");
        assert!(Gdp::new(bad).is_err(), "{bad}");
    }
    // The widest range of budgets that counts in whole units can have: there is privacy to speak of, and an answer.
    let with = |rho: f64| ContinualVector::builder(1 << 20, Zcdp::new(rho).unwrap()).cells(3);
    for rho in [1e-12, 1e-6, 1.0, 1e6] {
        assert!(with(rho).build().unwrap().noise_std().is_finite());
    }
}

#[test]
fn noise_that_no_counter_could_show_or_that_protects_nothing_is_refused() {
    let with = |rho: f64| ContinualVector::builder(2, Zcdp::new(rho).unwrap()).cells(1);
    if let Ok(most) = Zcdp::new(1e12) {
        let builder = ContinualVector::builder(2, most).cells(1);
        refused(&builder, "the noise scale", &["lower the budget", "was given"]);
    }
    let hidden = with(1e-12).max_weight(MAX_WEIGHT).contributions(u32::MAX);
    refused(&hidden, "the noise scale", &["raise the budget", "was given"]);
    assert!(with(1e6).build().is_ok());
}

#[test]
fn bounds_out_of_range_are_refused() {
    refused(&builder().max_weight(0), "max_weight", &["from 1 to 2^31", "0 was given"]);
    refused(&builder().max_weight(MAX_WEIGHT + 1), "max_weight", &["from 1 to 2^31", "2147483649 was given"]);
    assert!(builder().max_weight(MAX_WEIGHT).build().is_ok());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-100, 1e100, f64::MIN_POSITIVE] {
        refused(&builder().max_norm(bad), "max_norm", &["from 2^-300 to 2^300", &format!("{bad:?} was given")]);
    }
    for good in [2f64.powi(-300), 1e-30, 0.3, 1.0, 1e30, 2f64.powi(300)] {
        let vector = builder().max_norm(good).build().unwrap();
        assert!((vector.noise_std() / good).is_normal());
    }
}

#[test]
fn contributions_of_zero_are_refused() {
    refused(&builder().contributions(0), "contributions", &["at least 1", "0 was given"]);
    assert!(builder().contributions(1).build().is_ok());
}

#[test]
fn a_plan_refuses_what_building_refuses() {
    let bad = [
        builder().cells(0),
        builder().max_weight(0),
        builder().max_norm(-1.0),
        builder().contributions(0),
        ContinualVector::builder(0, Zcdp::new(0.5).unwrap()).cells(1),
        ContinualVector::builder(1, Zcdp::new(0.5).unwrap()).cells(1).mechanism(Mechanism::TreePaper),
    ];
    for builder in bad {
        assert_eq!(builder.plan().unwrap_err(), builder.build().unwrap_err());
    }
    let plan = builder().plan().unwrap();
    let vector = builder().build().unwrap();
    assert_eq!(plan.noise_std(), vector.noise_std());
    assert_eq!(plan.lattice_step(), vector.lattice_step());
    assert_eq!(plan.calibration(), vector.calibration());
}

#[test]
fn the_insecure_key_depends_on_the_seed_the_name_and_every_parameter_of_the_noise() {
    let base = builder();
    let key = |builder: &Builder| builder.insecure_key("vector", 1);
    assert_eq!(key(&base), key(&builder()));
    let others = [
        base.insecure_key("vector", 2),
        base.insecure_key("counter", 1),
        key(&ContinualVector::builder(101, Zcdp::new(0.5).unwrap()).cells(3)),
        key(&ContinualVector::builder(100, Zcdp::new(0.25).unwrap()).cells(3)),
        key(&builder().cells(4)),
        key(&builder().blocks(&[1, 2])),
        key(&builder().blocks(&[2, 1])),
        key(&builder().max_weight(2)),
        key(&builder().max_norm(1.0)),
        key(&builder().max_norm(2.0)),
        key(&builder().mechanism(Mechanism::TreePaper)),
        key(&builder().unit(Unit::Lifetime)),
        key(&builder().contributions(2)),
        key(&base),
    ];
    for (i, a) in others.iter().enumerate() {
        assert!(others[..i].iter().all(|b| a != b), "{i}");
    }
    // What does not change the noise does not change the key.
    assert_eq!(key(&builder().on_excess(OnExcess::Clip).invalid(Invalid::Drop)), key(&base));
}
