import Testing

@testable import Gateway

@Suite struct CameraPicturesTests {
    @Test(
        "what a query asks for is a rendition",
        arguments: [
            ([:], "jpeg"), (["width": "640"], "jpeg:640x0;fit"), (["fps": "10"], "jpeg@10"),
            (["fps": "29.97"], "jpeg@29.97003"), (["fps": "30000/1001"], "jpeg@29.97003"),
            (["fps": "2.5", "width": "64", "height": "48"], "jpeg:64x48@2.5;fit"), (["fps": "1/30"], nil),
            (["fps": "0"], nil), (["fps": "-1"], nil), (["fps": "100001"], nil), (["fps": "10;q=1"], nil),
            (["width": "064"], nil), (["crop": "8x6 1 2"], "jpeg;crop=8x6+1+2"),
        ] as [([String: String], String?)])
    func rendition(_ query: [String: String], _ wanted: String?) {
        #expect(CameraPictures.rendition(query, isMoving: true) == wanted)
    }

    @Test("one picture has no rate")
    func oneHasNoRate() {
        #expect(CameraPictures.rendition(["fps": "1/30"], isMoving: false) == "jpeg")
    }
}
