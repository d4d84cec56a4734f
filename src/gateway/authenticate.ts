import { bearerSecret, invalidApiKey } from "../keys/bearer.ts";
import type { Digest } from "../keys/digest.ts";
import type { FailedAttempts } from "../keys/failed-attempts.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Connection } from "./exchange.ts";

/** Who asks. A promise only for a key that this instance has not seen yet. */
export type Authenticate = (connection: Connection) => KeyEntry | Promise<KeyEntry>;

/** Garbage fails its checksum before it costs a digest; failures are limited by address, valid keys never are. */
export function createAuthenticate(
	deps: { keyring: Keyring; digest: Digest; failedAttempts: FailedAttempts },
	options: { serviceName: string },
): Authenticate {
	const { keyring, digest, failedAttempts } = deps;

	function known(entry: KeyEntry | null | "unknown", address: string): KeyEntry {
		if (entry !== null && entry !== "unknown") return entry;
		failedAttempts.count(address);
		throw invalidApiKey();
	}

	return ({ request, address }) => {
		let found: string;
		try {
			found = digest(bearerSecret(request.headers, options.serviceName));
		} catch (error) {
			failedAttempts.count(address);
			throw error;
		}
		const entry = keyring.peek(found);
		return entry === undefined ? keyring.load(found).then((loaded) => known(loaded, address)) : known(entry, address);
	};
}
