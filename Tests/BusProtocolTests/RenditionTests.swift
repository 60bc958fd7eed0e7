import BusProtocol
import Testing

@Suite struct RenditionTests {
    @Test func everyRenditionReadsBackAsItself() throws {
        var random = SeededGenerator(state: 2)
        for _ in 0..<5000 {
            var rendition = Rendition(Rendition.Encoding.allCases.randomElement(using: &random) ?? .native)
            if rendition.encoding != .native, Bool.random(using: &random) {
                rendition.width = Int.random(in: 0...Rendition.maxDimension, using: &random)
                rendition.height = Int.random(in: 1...Rendition.maxDimension, using: &random)
            }
            if Bool.random(using: &random) {
                rendition.rateMillionths = Int.random(in: 1...100_000_000_000, using: &random)
            }
            if rendition.encoding == .jpeg { rendition.quality = Int.random(in: 1...100, using: &random) }
            #expect(try Rendition(parsing: rendition.description) == rendition)
        }
    }

    @Test func theDefaultQualityIsNone() {
        var rendition = Rendition(.jpeg)
        rendition.quality = Rendition.defaultQuality
        #expect(rendition == Rendition(.jpeg))
    }

    @Test func theRefusalNamesThePart() {
        let wrong = [
            "png": "no format", "native:1x1": "native takes no size", "bgr;q=1": "only jpeg", "bgr:0x0": "may be 0",
            "bgr:01x1": "leading zero", "bgr@0": "above 0", "jpeg;q=0": "1 to 100", "bgr@1:2x2": "order",
        ]
        for (text, why) in wrong {
            let error = #expect(throws: BusError.self) { try Rendition(parsing: text) }
            #expect(error?.message.contains(why) == true, "\(text): \(error?.message ?? "")")
        }
    }
}
