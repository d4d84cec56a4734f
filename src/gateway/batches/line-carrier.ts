import { SlotMap } from "../../base/slot-map.ts";
import type { BatchUsage } from "../../batch/batch-record.ts";
import type { LineSender } from "../../batch/line-work.ts";
import type { Keyring } from "../../keys/keyring.ts";
import type { SettledEvent } from "../../ledger/event.ts";
import { INFERENCE_ENDPOINTS } from "../inference.ts";
import { loadKey } from "../serve/authenticate.ts";
import type { ServeDeps } from "../serve/context.ts";
import type { ServedEndpoint } from "../serve/serve.ts";

export type LineCarrier = ReturnType<typeof createLineCarrier>;

/** Sends each line of a batch through the gateway like a client's request, with the batch's key. */
export function createLineCarrier(deps: ServeDeps, keyring: Pick<Keyring, "load">) {
	/** Usage of lines in flight, kept from the settlement until `usageOf` reads it after the line's answer. */
	const used = new SlotMap<BatchUsage>();
	/** Lines in flight per model, including lines that wait for a model server. */
	const underWay = new Map<string, number>();
	const count = (model: string, change: 1 | -1) => void underWay.set(model, (underWay.get(model) ?? 0) + change);
	return {
		async answer(sent: Parameters<LineSender["answer"]>[0]): Promise<Response> {
			const { batchId, requestUuid, model, endpoint, keyDigest, body, signal } = sent;
			const request = new Request(`http://batch.internal${endpoint}`, {
				method: "POST",
				headers: { "content-type": "application/json" },
				body,
				signal,
			});
			const served = ENDPOINTS.get(endpoint);
			if (served === undefined) throw new Error(`no line asks for ${endpoint}`);
			const line = { batchId, requestUuid };
			count(model, 1);
			try {
				const connection = { request, address: "", setIdleTimeout() {}, line };
				return await served.answer(deps, connection, () => loadKey(keyring, keyDigest, deps.clock));
			} finally {
				count(model, -1);
				deps.upstreams.wake(model);
			}
		},
		usageOf: (requestUuid: string) => used.delete(requestUuid),
		room: (model: string, signal: AbortSignal) => deps.upstreams.room(model, () => underWay.get(model) ?? 0, signal),
		/** Receives every settlement; stores those of batch lines until `usageOf` reads them. */
		settled(event: SettledEvent): void {
			const { batch, id, promptTokens, cachedTokens, completionTokens, reasoningTokens, charged } = event;
			if (batch === undefined) return;
			used.set(id, { promptTokens, cachedTokens, completionTokens, reasoningTokens, chargedNanoUsd: charged });
		},
	};
}

const ENDPOINTS: ReadonlyMap<string, ServedEndpoint> = new Map(Object.entries(INFERENCE_ENDPOINTS));
