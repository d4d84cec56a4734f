import type { Clock } from "../base/clock.ts";
import { checkKey } from "../keys/access.ts";
import { bearerSecret, invalidApiKey } from "../keys/bearer.ts";
import type { Digest } from "../keys/digest.ts";
import type { FailedAttempts } from "../keys/failed-attempts.ts";
import type { KeyEntry } from "../keys/key-entry.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Connection } from "./exchange.ts";

/** Who asks. A promise only for a key that this instance has not seen yet. */
export type Authenticate = (connection: Connection) => KeyEntry | Promise<KeyEntry>;

/** Whose key a request carries, whatever may be done with it; undefined if this instance knows of none. Counts nothing. */
export type KeyOf = (connection: Connection) => KeyEntry | undefined;

/**
 * Garbage fails its checksum before it costs a digest; failures are limited by address, valid keys never are. A key
 * that is not in force is turned away before its body is read; what admits the request looks again.
 */
export function createAuthenticate(
	deps: { keyring: Keyring; digest: Digest; failedAttempts: FailedAttempts; clock: Clock },
	options: { serviceName: string },
): Authenticate {
	const { keyring, digest, failedAttempts, clock } = deps;

	function known(entry: KeyEntry | null | "unknown", connection: Connection): KeyEntry {
		if (entry === null || entry === "unknown") {
			failedAttempts.count(connection.address);
			throw invalidApiKey();
		}
		checkKey(entry, clock.wallMs());
		return entry;
	}

	// The address is asked for only where it is needed: finding it out costs more than the whole look-up.
	return (connection) => {
		let found: string;
		try {
			found = digest(bearerSecret(connection.request.headers, options.serviceName));
		} catch (error) {
			failedAttempts.count(connection.address);
			throw error;
		}
		const entry = keyring.peek(found);
		return entry === undefined
			? keyring.load(found).then((loaded) => known(loaded, connection))
			: known(entry, connection);
	};
}

export function createKeyOf(
	deps: { keyring: Pick<Keyring, "peek">; digest: Digest },
	options: { serviceName: string },
): KeyOf {
	return ({ request }) => {
		let digest: string;
		try {
			digest = deps.digest(bearerSecret(request.headers, options.serviceName));
		} catch {
			return undefined;
		}
		const entry = deps.keyring.peek(digest);
		return entry === "unknown" ? undefined : entry;
	};
}
