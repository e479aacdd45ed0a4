/* The freestanding library, called from C. */
int fastgame_check(void);

/* The precompiled alloc crate names the unwinder's personality routine; with panics that abort it is never called. */
void rust_eh_personality(void) {}

int main(void) { return fastgame_check(); }
