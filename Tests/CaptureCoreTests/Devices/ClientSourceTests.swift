import BusProtocol
import Testing

@testable import CaptureCore

@Suite struct ClientSourceTests {
    private func source(_ name: String) -> ClientSource {
        ClientSource(
            name: name,
            description: FormatDescription(pixelFormat: .bgr24, dimensions: Dimensions(width: 2, height: 2)),
            owner: LockHolder(uid: 1, gid: 1, pid: 1, startTime: 1, name: "test"))
    }

    @Test func `a source may have a name of any script`() {
        #expect(source("My Filter").preferredID == "my-filter" && source("My Filter").uniqueID == "client-My-Filter")
        let long = [String(repeating: "ü", count: 64), String(repeating: "aü", count: 32)]
        for name in ["カメラ", "Küche", "Kôche", "📷"] + long {
            let source = source(name)
            #expect(DeviceID.isValid(source.preferredID) && ClientSource.isSource(source.uniqueID), "\(name)")
            #expect(source.identity.localizedName == name)
        }
        #expect(source("カメラ").preferredID.hasPrefix("source-"))
        #expect(source("Küche").preferredID.hasPrefix("k-che-"))
        #expect(source("Küche").uniqueID != source("Kôche").uniqueID)
        #expect(source("Küche").preferredID != source("Kôche").preferredID)
        for name in ["---", " ", "\u{200B}", "\u{3000}"] { #expect(source(name).preferredID.isEmpty) }
    }
}
