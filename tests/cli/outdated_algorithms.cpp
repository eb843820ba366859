// A shared object that was compiled with headers of another version, for the test of --registry.

extern "C" {
extern const int baton_headers;
const int baton_headers = 1007;
void baton_register(void*);
void baton_register(void*) { __builtin_trap(); }
}
