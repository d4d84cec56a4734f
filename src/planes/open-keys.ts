import type { Config } from "../config.ts";
import { createAuthenticate } from "../gateway/serve/authenticate.ts";
import { createDigest } from "../keys/digest.ts";
import { createFailedAttempts } from "../keys/failed-attempts.ts";
import { createKeyLoadLimiter } from "../keys/key-load-limiter.ts";
import { keyLoader } from "../keys/key-loader.ts";
import { createKeyring } from "../keys/keyring.ts";
import type { GatewayDeps } from "./gateway-deps.ts";

/** Each costs Postgres one look at an index: 500 a second are some hundredths of a core. */
const FAILED_LOOK_UPS_PER_MINUTE_MAX = 30_000;

/** The keys that a gateway knows, and how a request's is told from what is none. */
export function openKeys(config: Pick<Config, "serviceName">, deps: GatewayDeps) {
	const { db, clock, log, catalog } = deps;
	const keyring = createKeyring({ load: keyLoader(db.ledger), log });
	const failedAttempts = createFailedAttempts(
		{ clock },
		{ perMinuteMax: () => catalog.limits().authFailuresPerMinute },
	);
	const keyLoadLimiter = createKeyLoadLimiter(
		{ keyring, failedAttempts, clock },
		{ failuresPerMinuteMax: FAILED_LOOK_UPS_PER_MINUTE_MAX },
	);
	const digest = createDigest(deps.secrets.keyPepper);
	const authenticate = createAuthenticate(
		{ keyring, keyLoadLimiter, digest, failedAttempts, clock },
		{ serviceName: config.serviceName },
	);
	return { keyring, authenticate };
}
