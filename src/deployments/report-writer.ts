import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Statements } from "../db/statements.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { deployedModel } from "./deployed-model.ts";

/** Interval between checks for changes, and so the greatest delay of the console's view. */
const LOOK_MS = 2_000;
/** Interval at which an unchanged row is rewritten, because an old row looks like a dead gateway's and is deleted. */
const SAME_MS = 3_600_000;

export function startReportWriter(
	deps: {
		statements: Statements;
		clock: Clock;
		log: Log;
		catalog: Pick<Catalog, "current" | "onChange">;
		upstreams: Pick<Upstreams, "replicas">;
	},
	options: { instanceId: string },
) {
	const { statements, clock, log, catalog, upstreams } = deps;
	const written = { models: "", replicas: "", atMs: 0 };
	let cancel: (() => void) | undefined;
	let writing: Promise<void> | undefined;
	let stopped = false;

	async function writeNow(): Promise<void> {
		const models = JSON.stringify([...catalog.current().models.values()].map(deployedModel));
		const replicas = JSON.stringify(upstreams.replicas());
		const nowMs = clock.monotonicMs();
		if (models === written.models && replicas === written.replicas && nowMs - written.atMs < SAME_MS) return;
		try {
			// Does not write unchanged models: they rarely change, while the load often does.
			if (models === written.models) {
				const rows = await statements`
					update gateway_report set replicas = ${replicas}::text::jsonb, at = clock_timestamp()
					where instance_id = ${options.instanceId} returning 1`;
				// The row was deleted as a dead gateway's, so the next write must contain everything.
				if (rows.length === 0) {
					written.models = "";
					return writeNow();
				}
			} else
				await statements`
					insert into gateway_report (instance_id, models, replicas, at)
					values (${options.instanceId}, ${models}::text::jsonb, ${replicas}::text::jsonb, clock_timestamp())
					on conflict (instance_id) do update set models = excluded.models, replicas = excluded.replicas, at = excluded.at`;
			Object.assign(written, { models, replicas, atMs: nowMs });
		} catch (error) {
			log.debug("the report of this gateway could not be written", { error });
		}
	}

	/** Writes changes, one write at a time, so that an older state cannot overwrite a newer one. Never rejects. */
	function write(): Promise<void> {
		const mine: Promise<void> = (writing ?? Promise.resolve()).then(writeNow).finally(() => {
			if (writing === mine) writing = undefined;
		});
		writing = mine;
		return mine;
	}

	function wake(): void {
		if (stopped) return;
		cancel = clock.after(LOOK_MS, () => void write().then(wake));
	}

	const ignore = catalog.onChange(() => void write());
	wake();

	return {
		write,
		async stop() {
			stopped = true;
			cancel?.();
			ignore();
			await writing;
		},
	};
}
