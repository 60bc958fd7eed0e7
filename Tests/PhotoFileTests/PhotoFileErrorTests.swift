import Imaging
import PhotoFile
import Testing

@Suite struct PhotoFileErrorTests {
    @Test func `a frame that is the device's fault is told apart from what is ours`() {
        let short = PhotoFileError(.truncated(needed: 10, delivered: 9))
        #expect(short.isOfFrame && short.description == "the frame has 9 bytes instead of 10")
        let broken = PhotoFileError(.damaged("Premature end"))
        #expect(broken.isOfFrame && broken.description == "the frame is damaged: Premature end")
        #expect(!PhotoFileError(.failed("no memory")).isOfFrame && !PhotoFileError.unsupported("no").isOfFrame)
    }
}
