/// What to do with a wish that the device can't fulfil exactly (`mode` of `device.configure`).
public enum ConfigurationMode: String, Hashable, Sendable, CaseIterable {
    /// Refuse it.
    case exact
    /// Take what is nearest, and tell.
    case nearest
}
