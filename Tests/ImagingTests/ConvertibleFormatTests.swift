import Testing

@testable import CaptureCore
@testable import Imaging

/// What the arbiter takes for convertible is what pictures are made of.
@Suite struct ConvertibleFormatTests {
    @Test func sameFormats() {
        #expect(Set(PixelFormat.convertibleNames) == Set(SourceFormat.table.keys))
    }
}
