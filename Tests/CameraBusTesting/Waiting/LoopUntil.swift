public import BusServer

extension Loop {
    /// Runs until the condition holds, at most a minute, or longer on a slow machine. It looks every 5 ms, which is
    /// only for what sends the loop nothing.
    ///
    /// - Returns: whether it does.
    public func run(until condition: @escaping () -> Bool) throws -> Bool {
        if condition() { return true }
        var isLate = false
        let deadline = schedule(at: Deadline.after(seconds: 60).time) { [self] in
            isLate = true
            stop()
        }
        defer { cancel(deadline) }
        func check() {
            if condition() { return stop() }
            if !isLate { schedule(afterMilliseconds: 5) { check() } }
        }
        check()
        try run()
        return !isLate
    }
}
