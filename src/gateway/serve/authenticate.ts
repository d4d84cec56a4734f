import type { Clock } from "../../base/clock.ts";
import { checkKey, type KeyUse } from "../../keys/access.ts";
import { invalidApiKey, readBearerSecret } from "../../keys/bearer.ts";
import { addressNetwork, type FailedAttempts } from "../../keys/failed-attempts.ts";
import type { KeyEntry } from "../../keys/key-entry.ts";
import type { KeyLoadLimiter } from "../../keys/key-load-limiter.ts";
import type { Keyring } from "../../keys/keyring.ts";
import type { DigestFunction, KeyDigest } from "../../keys/secret.ts";
import { ANONYMOUS_TIMEOUT_S, type Connection, IDLE_TIMEOUT_S, trySetIdleTimeout, unpaidTurn } from "../connection.ts";

/** Returns a request's key; a promise if the key is not in memory, or is refused. */
export type Authenticate = (connection: Connection, use?: KeyUse) => KeyEntry | Promise<KeyEntry>;

/**
 * Verifies the secret's checksum before computing its digest, which costs more. Failed authentications are limited per
 * address; requests with valid keys never are. Revoked or expired keys get a KeyFault before the body is read.
 */
export function createAuthenticate(
	deps: {
		keyring: Pick<Keyring, "peek">;
		keyLoadLimiter: KeyLoadLimiter;
		digest: DigestFunction;
		failedAttempts: FailedAttempts;
		clock: Clock;
	},
	options: { serviceName: string },
): Authenticate {
	const { keyring, keyLoadLimiter, digest, failedAttempts, clock } = deps;

	function known(entry: KeyEntry | "unknown", connection: Connection, use?: KeyUse): KeyEntry {
		if (entry === "unknown") {
			failedAttempts.count(connection.address);
			throw invalidApiKey();
		}
		checkKey(entry, clock.wallMs(), use);
		trySetIdleTimeout(connection, IDLE_TIMEOUT_S);
		return entry;
	}

	async function loaded(found: KeyDigest, connection: Connection, use?: KeyUse): Promise<KeyEntry> {
		// The look-up may wait in a queue.
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
		try {
			return known(await keyLoadLimiter.find(found, connection.address), connection, use);
		} catch (error) {
			trySetIdleTimeout(connection, ANONYMOUS_TIMEOUT_S);
			return refused(connection, error);
		}
	}

	/** Rejects when the client may send its next request. */
	async function refused({ address, request }: Connection, error: unknown): Promise<never> {
		await unpaidTurn(addressNetwork(address), request);
		throw error;
	}

	// Determines the client's address only for a failure, because that costs more than all other steps.
	function digestOf(connection: Connection): KeyDigest {
		try {
			return digest(readBearerSecret(connection.request.headers, options.serviceName));
		} catch (error) {
			failedAttempts.count(connection.address);
			throw error;
		}
	}

	return (connection, use) => {
		try {
			const found = digestOf(connection);
			const entry = keyring.peek(found);
			return entry === undefined ? loaded(found, connection, use) : known(entry, connection, use);
		} catch (error) {
			return refused(connection, error);
		}
	};
}

/** Loads the key with this digest, for callers that have authorised the key's owner themselves. */
export async function loadKey(keyring: Pick<Keyring, "load">, digest: KeyDigest, clock: Clock): Promise<KeyEntry> {
	const entry = await keyring.load(digest);
	if (entry === null) throw invalidApiKey();
	checkKey(entry, clock.wallMs());
	return entry;
}
