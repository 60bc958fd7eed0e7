import Imaging
import PhotoFile
import Testing

@Suite struct PhotoFileErrorTests {
    @Test func `a frame that is the device's fault is told apart from what is ours`() {
        #expect(PhotoFileError(.truncated(needed: 10, delivered: 9)) == .damaged("the frame has 9 bytes instead of 10"))
        #expect(PhotoFileError(.damaged("Premature end")) == .damaged("the frame is damaged: Premature end"))
        #expect(PhotoFileError(.failed("no memory")) == .failed("no memory"))
    }
}
