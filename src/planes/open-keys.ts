import type { Config } from "../config.ts";
import { createAuthenticate } from "../gateway/serve/authenticate.ts";
import { createDigest } from "../keys/digest.ts";
import { createFailedAttempts } from "../keys/failed-attempts.ts";
import { createKeyLoadLimiter } from "../keys/key-load-limiter.ts";
import { keyLoader } from "../keys/key-loader.ts";
import { createKeyring } from "../keys/keyring.ts";
import type { GatewayDeps } from "./gateway-deps.ts";

/** Each failed lookup costs Postgres one index read; 500 a second take a few percent of a core. */
const FAILED_LOOK_UPS_PER_MINUTE_MAX = 30_000;

/** Opens the keyring and the authentication of requests. */
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
