import type { Clock } from "../../base/clock.ts";
import type { Model } from "../../catalog/model.ts";
import type { SettledEvent } from "../../ledger/event.ts";

export type ModelSpeeds = ReturnType<typeof createModelSpeeds>;

interface Speed {
	/** Moving average of milliseconds per output token, or per answer if the server counts no tokens. */
	msEach: number;
	atMs: number;
}

const WEIGHT = 0.2;
/** Measurements older than this are ignored, so that a slow model is tried again. */
const KNOWN_MS = 5 * 60_000;
/** More models than any catalogue has. Above it all measurements are dropped. */
const MODELS_MAX = 2_000;

/** Measures the recent speed of each model on this instance. */
export function createModelSpeeds(deps: { clock: Clock }) {
	const speeds = new Map<string, Speed>();

	function msEach(model: Model, nowMs: number): number {
		const speed = speeds.get(model.id);
		return speed === undefined || nowMs - speed.atMs > KNOWN_MS ? 0 : speed.msEach;
	}

	return {
		record(event: Pick<SettledEvent, "model" | "ending" | "completionTokens" | "ms">) {
			const { model, ending, completionTokens, ms } = event;
			if (ending !== "finished") return;
			const atMs = deps.clock.monotonicMs();
			const now = ms / Math.max(1, completionTokens);
			const speed = speeds.get(model);
			if (speed !== undefined) {
				speed.msEach = atMs - speed.atMs > KNOWN_MS ? now : speed.msEach + WEIGHT * (now - speed.msEach);
				speed.atMs = atMs;
				return;
			}
			if (speeds.size >= MODELS_MAX) speeds.clear();
			speeds.set(model, { msEach: now, atMs });
		},
		/** Sorts models by speed, fastest first. Models without a measurement come first, so that they are measured. */
		fastestFirst(models: readonly Model[]): readonly Model[] {
			const nowMs = deps.clock.monotonicMs();
			return models.toSorted((a, b) => msEach(a, nowMs) - msEach(b, nowMs));
		},
	};
}
