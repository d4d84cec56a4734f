import type { SettledColumns } from "./settled-columns.ts";

/** A standby's lag is shorter. */
const KEPT_MS = 30_000;
const SETTLEMENTS_MAX = 20_000;

/** Batches of settlements that Postgres acknowledged recently, kept for sending again after a failover. */
export function createKeptBatches() {
	const kept: { readonly batch: SettledColumns; readonly atMs: number }[] = [];
	let all = 0;

	return {
		/** `batch` must not change any more. Also drops batches that are too old or too many. */
		add(batch: SettledColumns, nowMs: number) {
			if (batch.length === 0) return;
			batch.forgetTexts();
			kept.push({ batch, atMs: nowMs });
			all += batch.length;
			const young = kept.findIndex(({ batch: { length }, atMs }) => {
				if (all <= SETTLEMENTS_MAX && nowMs - atMs <= KEPT_MS) return true;
				all -= length;
				return false;
			});
			kept.splice(0, young < 0 ? kept.length : young);
		},
		/** Batches kept at the time of the call, oldest first. */
		batches: (): readonly SettledColumns[] => kept.map(({ batch }) => batch),
	};
}
