import ArgumentParser
import BusClient

/// `0.5,0.5`: a point of the picture.
struct PointArgument: Hashable {
    let point: PreviewLayout.Point

    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x), (0...1).contains(y) else {
            throw ValidationError("a point is two numbers from 0 to 1, across and down: 0.5,0.5 is the middle")
        }
        point = PreviewLayout.Point(x: x, y: y)
    }
}

/// What commands that point at something say of points.
let pointHelp = ArgumentHelp(
    "Where in the camera's own picture, across and down: 0,0 is its top left, 1,1 its bottom right.", valueName: "x,y")
