#include <sqlite3.h>

// SQLITE_TRANSIENT, which is a cast that Swift doesn't see: the bytes are copied before the call returns. An empty text is none of C's.
static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, text ? text : "", count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

// sqlite3_db_config takes as many arguments as its option says. What is in the file counts for nothing as long as it is on.
static inline int csqlite_reset_database(sqlite3 *database, int is_on) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_RESET_DATABASE, is_on, (int *)0);
}
