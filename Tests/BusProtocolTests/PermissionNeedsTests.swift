import BusProtocol
import Testing

@Suite struct PermissionNeedsTests {
    /// Who asks for permission, or only looks, needs none; what is not said to is taken to change something.
    @Test func `what changes a device needs permission, and what tells why it is refused does not`() {
        for name in ["device.lock", "device.renew", "device.configure", "device.set", "device.rename"] {
            #expect(MethodTable[name]?.needs == .permission, "\(name)")
        }
        for name in [
            "bus.hello", "bus.cancel", "bus.snapshot", "device.list", "device.unlock", "authorization.status",
            "authorization.request",
        ] {
            #expect(MethodTable[name]?.needs == .nothing, "\(name)")
        }
        #expect(Method("x.y", "Does something.").needs == .permission)
        for name in ["list", "grant", "deny", "reset"] {
            #expect(MethodTable["authorization.\(name)"]?.admin == true, "\(name)")
        }
    }
}
