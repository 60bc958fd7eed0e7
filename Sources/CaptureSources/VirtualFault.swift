public import CaptureCore

/// What a virtual device can be told to suffer (`fault.inject`).
public enum VirtualFault: Hashable, Sendable {
    /// No frames for so many milliseconds, or for good when nil; the queue stays silent, as a hung camera's does.
    case stall(milliseconds: Int?)
    /// The worker process ends at once, as by a signal.
    case crash
    /// The next start of streaming is refused as in use by another program.
    case busy
    /// Each configuring call takes so many milliseconds.
    case slow(milliseconds: Int)
    /// The next change of that control, or of anything where nil, is refused when it is made, though it was found possible before.
    case refuse(control: String?)
    /// Another program sets that control, as far as the kernel would let it.
    case meddle(control: String, value: ControlValue)
    /// Ends all faults.
    case none
}
