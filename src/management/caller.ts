import { createFairPool } from "../base/fair-pool.ts";
import { Fault } from "../base/fault.ts";
import type { Parts } from "../console/console-deps.ts";
import type { Connection } from "../gateway/connection.ts";
import { invalidApiKey, readBearerText } from "../keys/bearer.ts";
import { addressSite, createFailedAttempts } from "../keys/failed-attempts.ts";
import { createKeyLoadLimiter } from "../keys/key-load-limiter.ts";
import { findManagementKey, type ManagementKeyRecord, touchManagementKey } from "../keys/management-key-admin.ts";
import type { ManagementScope } from "../keys/management-scope.ts";
import type { ManagementKeyDigest, ManagementSecret } from "../keys/management-secret.ts";
import { managementDigest, parseManagementSecret } from "../keys/management-secret.ts";

/** Failed attempts per minute and address; further ones get 429. */
const FAILURES_PER_MINUTE_MAX = 30;
/** Failed attempts per minute, of all addresses together, for which the database is queried. */
const ALL_FAILURES_PER_MINUTE_MAX = 3_000;
/** Most look-ups at once of keys that are not in `known`, and the fraction for one network. */
const LOOK_UPS_MAX = 256;
const LOOK_UPS_SHARE = 3 / 4;
/** Most digests in `known`; above it the least recently used one is dropped. */
const KNOWN_MAX = 10_000;

export type FoundKey = Pick<ManagementKeyRecord, "id">;

/**
 * Authenticates management keys. Limits failed attempts as a gateway does; a key that was found once is not subject to
 * these limits. Reads the key from the database for each request, so that a revoked key stops working at once.
 */
export function createKeyAuthenticator({ statements, clock, keyMaker }: Parts<"statements" | "clock" | "keyMaker">) {
	const failedAttempts = createFailedAttempts({ clock }, { perMinuteMax: () => FAILURES_PER_MINUTE_MAX });
	const load = (digest: ManagementKeyDigest) => findManagementKey(statements, { digest });
	const keyLoadLimiter = createKeyLoadLimiter(
		{ keyring: { load }, failedAttempts, clock },
		{ failuresPerMinuteMax: ALL_FAILURES_PER_MINUTE_MAX },
	);
	const lookUps = createFairPool({
		size: () => LOOK_UPS_MAX,
		share: () => LOOK_UPS_SHARE,
		own: tooMany,
		full: tooMany,
	});

	/** Ids of keys that were found, by digest, least recently used first. */
	const known = new Map<ManagementKeyDigest, FoundKey>();

	async function lookUp(digest: ManagementKeyDigest, address: string): Promise<FoundKey> {
		const network = addressSite(address);
		lookUps.take(network);
		return keyLoadLimiter.find(digest, address).finally(() => lookUps.giveBack(network));
	}

	/**
	 * Returns the id of a key, whose state `again` checks. Faults `missing_api_key`, `invalid_api_key`,
	 * `rate_limit_exceeded`, `overloaded`.
	 */
	async function find(connection: Connection): Promise<FoundKey> {
		const digest = managementDigest(keyMaker.digest, secretOf(connection));
		const found = known.get(digest) ?? (await lookUp(digest, connection.address));
		known.delete(digest);
		if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value as ManagementKeyDigest);
		known.set(digest, { id: found.id });
		return found;
	}

	function secretOf({ request, address }: Connection): ManagementSecret {
		try {
			const text = readBearerText(request.headers);
			const secret = parseManagementSecret(text, keyMaker.serviceName);
			if (secret !== undefined) return secret;
			if (text.startsWith("tgm_")) throw invalidApiKey();
			throw new Fault("invalid_api_key", "The management interface accepts management keys (`tgm_…`), not API keys.");
		} catch (error) {
			failedAttempts.count(address);
			throw error;
		}
	}

	/** Reads the key by its id; throws if it has ended. Faults `api_key_revoked`, `api_key_expired`. */
	async function again({ id }: FoundKey): Promise<ManagementKeyRecord> {
		const present = await findManagementKey(statements, { id });
		if (present === null) throw invalidApiKey();
		checkInForce(present);
		return present;
	}

	return {
		find,
		/** Reads a found key for a request. Faults `api_key_revoked`, `api_key_expired`. */
		async identify(key: FoundKey): Promise<ManagementKeyRecord> {
			const caller = await again(key);
			await touchManagementKey(statements, caller.id);
			return caller;
		},
		again,
	};
}

export function tooMany(): Fault {
	return new Fault("overloaded", "Too many requests at once.", { retryAfterS: 2 });
}

/** Throws Fault `forbidden` if the key lacks the scope. */
export function checkScope(caller: ManagementKeyRecord, scope: ManagementScope | null): void {
	if (scope !== null && !caller.scopes.includes(scope))
		throw new Fault("forbidden", `This management key lacks the scope \`${scope}\`.`);
}

function checkInForce({ state, expiresAtMs }: ManagementKeyRecord): void {
	if (state === "revoked") throw new Fault("api_key_revoked", "This management key was revoked.");
	if (state === "orphaned")
		throw new Fault("api_key_revoked", "This management key is no longer valid: its maker is no longer an operator.");
	if (state === "expired")
		throw new Fault("api_key_expired", `This management key expired at ${new Date(expiresAtMs ?? 0).toISOString()}.`);
}
