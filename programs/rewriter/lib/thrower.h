// What both sides of exception_library.cpp know.
struct Common { int number; const char *where; };
int thrown_there(int n);
int through_there(int (*f)(int), int n);
int cleaned();
