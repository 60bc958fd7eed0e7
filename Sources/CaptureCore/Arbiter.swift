/// Decides how a device streams that several want something of (C5).
///
/// Those are served in the order of their priority, then of their age, sessions before mere subscribers; each in turn is
/// served if one format of the device does for it and for all before it, and is else interrupted by the one it can't go
/// together with. Pictures are scaled down and left out for each as it needs, never made larger. So who comes first
/// never loses anything to who comes later, and the order of the demands in the array decides nothing.
///
/// - What streams is kept as it is as long as it does for all who are served.
/// - A locked device keeps its format and rate. Who needs another waits, interrupted by the holder. Where the holder himself
///   asks, pass no lock.
/// - Subscribers never change the format; but where a session does, they are minded in the choice.
public enum Arbiter {
    /// - Parameters:
    ///   - device: what people call the device, for the explanation.
    ///   - formats: its format table.
    ///   - current: how it is set; nil: not known.
    ///   - isStreaming: whether a change costs somebody a restart. If not, a format is chosen that fits best; else any that does is kept.
    ///   - demands: of all who want something; each party once.
    ///   - lock: who holds the lock of the device; nil: nobody.
    public static func decide(
        device: String, formats: [CaptureFormat], current: StreamSetting?, isStreaming: Bool = true,
        demands: [CaptureDemand], lock: CaptureParty? = nil
    ) -> ArbiterDecision {
        ArbiterDecision(setting: current, isChange: false, verdicts: [], explanation: [])
    }
}
