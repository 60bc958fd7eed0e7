import Glibc
import Testing

@testable import camerabus

@Suite struct GreyBalanceTests {
    /// A camera whose pixels answer its gains by a power, as a gamma does.
    private func card(_ gains: GreyBalance.Gains, _ light: (red: Double, blue: Double), _ power: Double) -> GreyCard {
        GreyCard(
            red: 100 * pow(light.red * gains.red, power), green: 100, blue: 100 * pow(light.blue * gains.blue, power))
    }

    @Test(arguments: [0.5, 1.0, 1.5], [0.4, 1.0, 2.5])
    func comesToGreyWhateverTheCameraMakesOfItsGains(_ power: Double, _ light: Double) {
        var gains = GreyBalance.Gains(red: 1, blue: 1)
        var balance = GreyBalance(gains, most: GreyBalance.Gains(red: 4, blue: 4))
        for _ in 0..<8 {
            switch balance.take(card(gains, (light, 1 / light), power), with: gains) {
            case .set(let next): gains = next
            case .grey:
                #expect(abs(gains.red * light - 1) < 0.05 && abs(gains.blue / light - 1) < 0.05)
                return
            case .exhausted: Issue.record("exhausted at \(gains)")
            }
        }
        Issue.record("not grey at \(gains)")
    }

    @Test func gainsThatDoNotReachEndIt() {
        var gains = GreyBalance.Gains(red: 1, blue: 1)
        var balance = GreyBalance(gains, most: GreyBalance.Gains(red: 1.5, blue: 1.5))
        for _ in 0..<20 {
            switch balance.take(card(gains, (0.2, 1), 1), with: gains) {
            case .set(let next): gains = next
            case .grey: Issue.record("grey at \(gains)")
            case .exhausted:
                #expect(gains.red == 1.5)
                return
            }
        }
        Issue.record("it doesn't end")
    }

    @Test func whatIsClippedOrDarkIsNoCard() {
        #expect(GreyCard(red: 120, green: 100, blue: 80).isUsable)
        #expect(!GreyCard(red: 255, green: 200, blue: 180).isUsable)
        #expect(!GreyCard(red: 60, green: 50, blue: 4).isUsable)
    }
}
