/** A simulated device with one passkey that verifies its user. */
import { createSign, generateKeyPairSync, randomBytes } from "node:crypto";

const sha256 = (text: string | Uint8Array) => new Bun.CryptoHasher("sha256").update(text).digest();
const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");

export function createDevice() {
	const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
	const { x = "", y = "" } = publicKey.export({ format: "jwk" });
	const part = (text: string) => Buffer.from(text, "base64url");
	const cose = Buffer.concat([
		Buffer.from("a5010203262001215820", "hex"),
		part(x),
		Buffer.from("225820", "hex"),
		part(y),
	]);
	const id = base64url(randomBytes(16));
	let count = 0;
	return {
		id,
		/** The stored public key in COSE format, for ES256. */
		publicKey: base64url(cose),
		answer(challenge: string, origin: string): Record<string, unknown> {
			count += 1;
			const counter = Buffer.alloc(4);
			counter.writeUInt32BE(count);
			// Flags: user present and verified.
			const data = Buffer.concat([sha256(new URL(origin).hostname), Buffer.of(0x05), counter]);
			const client = JSON.stringify({ type: "webauthn.get", challenge, origin, crossOrigin: false });
			const signature = createSign("sha256")
				.update(Buffer.concat([data, sha256(client)]))
				.sign(privateKey);
			return {
				id,
				rawId: id,
				type: "public-key",
				clientExtensionResults: {},
				response: {
					clientDataJSON: base64url(Buffer.from(client)),
					authenticatorData: base64url(data),
					signature: base64url(signature),
				},
			};
		},
	};
}
