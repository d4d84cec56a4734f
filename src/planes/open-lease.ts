import type { Config } from "../config.ts";
import type { Keyring } from "../keys/keyring.ts";
import { createPgShareStore, LIMITS_CHANNEL } from "../keys/limit-shares.ts";
import { type InstanceLease, startInstanceLease } from "../ledger/instance-lease.ts";
import { createKeyLimits, type KeyLimits } from "../limits/key-limits.ts";
import type { Secrets } from "../secrets.ts";
import { FORCED_STOP_MS } from "./drain-gateway.ts";
import type { GatewayDeps } from "./gateway-deps.ts";

type Opened = Pick<GatewayDeps, "db" | "clock" | "log" | "cleanup">;

interface LeaseDeps extends Opened {
	readonly keyring: Keyring;
	readonly secrets: Pick<Secrets, "instanceId">;
	onDiskFailed(error: unknown): void;
}

/** Opens the instance's lease: its right to admit, and its share of the credit. */
export async function openLease(
	config: Pick<Config, "dataDir" | "journal" | "leaseTtlMs">,
	deps: LeaseDeps,
): Promise<InstanceLease> {
	const { db, clock, log, keyring } = deps;
	const instanceLease = await startInstanceLease(
		{
			db,
			clock,
			log,
			apply: (entry) => keyring.apply(entry),
			reset: (seq) => keyring.clear(seq),
			onDiskFailed(error) {
				log.error("the journal's disk failed; this process ends", { error });
				deps.onDiskFailed(error);
			},
		},
		{
			instanceId: deps.secrets.instanceId,
			dataDir: config.dataDir,
			mode: config.journal,
			leaseTtlMs: config.leaseTtlMs,
		},
	);
	deps.cleanup.add(() => instanceLease.stop(FORCED_STOP_MS));
	return instanceLease;
}

/** Opens this instance's share of each key's limits. */
export async function openKeyLimits(deps: Opened & { instanceLease: InstanceLease }): Promise<KeyLimits> {
	const { db, instanceLease, clock, log } = deps;
	const store = createPgShareStore({ statements: db.statements, instanceLease });
	const keyLimits = createKeyLimits({ clock, shared: { store, log, openings: instanceLease.gate.openings } });
	deps.cleanup.add(() => keyLimits.stop());
	await db.listen(
		LIMITS_CHANNEL,
		(keyId) => keyLimits.recall(keyId),
		() => {},
	);
	return keyLimits;
}
