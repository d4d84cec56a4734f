import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Database } from "../db/database.ts";
import type { Secrets } from "../secrets.ts";

/** Dependencies of the parts of a gateway. */
export interface GatewayDeps {
	readonly db: Database;
	readonly clock: Clock;
	readonly log: Log;
	readonly cleanup: Cleanup;
	readonly catalog: Catalog;
	readonly secrets: Pick<Secrets, "keyPepper">;
}
