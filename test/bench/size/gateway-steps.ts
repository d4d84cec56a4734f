/** What a gateway does at its start and for keys that it does not know yet, on books of a size. */
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { waitForAllInstances } from "../../../src/cluster/wait-for-all-instances.ts";
import { createDigest } from "../../../src/keys/digest.ts";
import { createKey, revokeKey } from "../../../src/keys/key-admin.ts";
import type { Gateway } from "../gateways.ts";
import { startPortPrinter } from "../gateways.ts";
import { KEY_PEPPER, SERVICE_NAME, startProduct } from "../product.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "../prompts.ts";
import { accountId } from "./fill.ts";
import type { Measured } from "./measure.ts";

const COLD_KEYS = 200;
const STARTS = 3;
const REVOCATIONS = 20;
const FENCE_DEADLINE_MS = 30_000;
/** Until a flush has taken in what was settled. */
const FLUSHED_MS = 500;

export async function gatewaySteps(measured: Measured): Promise<void> {
	const { database, counter, add, note } = measured;
	const main = join(import.meta.dir, "../../../src/main.ts");
	const upstream = await startPortPrinter("the upstream", [
		process.execPath,
		join(import.meta.dir, "../fast-upstream.ts"),
	]);
	if (upstream === undefined) throw new Error("there is no upstream");
	const options = {
		command: [process.execPath, main],
		databaseUrl: database.url,
		upstreamPort: upstream.port,
		folder: join(measured.folder, "gateway"),
		pinned: false,
	};
	const started: (Gateway & { readyMs: number })[] = [];
	const start = async () => {
		started.push(await startProduct(options));
	};
	add("a start, until it is ready", await counter.cost(start));
	for (let more = 1; more < STARTS; more++) {
		await started.at(-1)?.stop();
		await start();
	}
	const ready = started.map(({ readyMs }) => readyMs).toSorted((a, b) => a - b);
	note("a start, until it is ready, median of three", "ms", ready[1] ?? Number.NaN);
	const gateway = started.at(-1) as Gateway;
	try {
		await coldKeys(measured, gateway);
		await revocations(measured);
	} finally {
		await gateway.stop();
		await upstream.stop();
	}
}

async function coldKeys({ counter, add, note, secrets }: Measured, gateway: Gateway): Promise<void> {
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const timesMs: number[] = [];
	const url = `http://127.0.0.1:${gateway.port}/v1/chat/completions`;
	const ask = async () => {
		for (const secret of secrets.slice(0, COLD_KEYS)) {
			const startedMs = performance.now();
			const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
			const response = await fetch(url, { method: "POST", headers, body });
			await response.arrayBuffer();
			if (response.status !== 200) throw new Error(`a cold key heard ${response.status}`);
			timesMs.push(performance.now() - startedMs);
		}
		await Bun.sleep(FLUSHED_MS);
	};
	add("a first request of a key, its flush among it", await counter.cost(ask, COLD_KEYS));
	timesMs.sort((a, b) => a - b);
	note("a first request of a key, median", "ms", timesMs[COLD_KEYS / 2] ?? Number.NaN);
	note("a first request of a key, 99th of 100", "ms", timesMs[COLD_KEYS * 0.99] ?? Number.NaN);
}

async function revocations({ database, counter, add, note }: Measured): Promise<void> {
	const { statements, liveness } = database;
	const maker = { statements, digest: createDigest(KEY_PEPPER), serviceName: SERVICE_NAME };
	const ids: string[] = [];
	for (let number = 0; number < REVOCATIONS; number++)
		ids.push((await createKey(maker, accountId(50 + number), { name: "revoked" })).id);
	const timesMs: number[] = [];
	const revoke = async () => {
		for (const id of ids) {
			const entry = await revokeKey(statements, { id });
			const { effective, elapsedMs } = await waitForAllInstances(
				{ liveness, clock: systemClock },
				entry,
				FENCE_DEADLINE_MS,
			);
			if (!effective) throw new Error("a revocation is not effective");
			timesMs.push(elapsedMs);
		}
	};
	add("a revocation, until no instance admits the key", await counter.cost(revoke, REVOCATIONS));
	timesMs.sort((a, b) => a - b);
	note("a revocation's wait, median", "ms", timesMs[REVOCATIONS / 2] ?? Number.NaN);
}
