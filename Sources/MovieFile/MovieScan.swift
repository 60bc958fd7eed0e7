/// What the heads of a file's parts say.
struct MovieScan {
    /// Fragments that are whole.
    var fragments = 0
    /// Where the last of them ends, bytes.
    var wholeSize: Int64 = 0
    /// Nanoseconds.
    var duration: Int64 = 0
    /// The end that is written last is there.
    var isFinished = false
}
