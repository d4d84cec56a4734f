/** Memory that keys cost: those in use, with credit set aside for them, and those that are only known. */
import { join } from "node:path";
import type { Figures } from "./figures.ts";
import { runLoad } from "./load.ts";
import { fillWithKeys } from "./population.ts";
import { residentBytes } from "./process-usage.ts";
import type { BenchDatabase } from "./product.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { World } from "./world.ts";

const IN_USE = 10_000;
const WARM_UP = 200;
const SETTLE_MS = 1_500;
const KNOWN = 100_000;
const CONNECTIONS = 32;
const KEY_MEMORY = join(import.meta.dir, "key-memory-process.ts");

export async function keys(world: World, figures: Figures): Promise<void> {
	await inUse(world, figures);
	for (let round = 0; round < world.mode.rounds; round++) {
		const { stdout, exitCode } = Bun.spawnSync([process.execPath, KEY_MEMORY, String(KNOWN)], { stderr: "inherit" });
		if (exitCode !== 0) throw new Error("the keys could not be counted");
		const bytes = JSON.parse(stdout.toString()) as Record<"known" | "limited" | "slice", number>;
		figures.add("keys", "memory of a key that is known, used lately", "bytes", "tollgate", bytes.known);
		figures.add("keys", "memory of a key's limits, used lately", "bytes", "tollgate", bytes.limited);
		figures.add("keys", "memory of a slice of a budget", "bytes", "tollgate", bytes.slice);
	}
}

async function inUse(world: World, figures: Figures): Promise<void> {
	let secrets: readonly string[] = [];
	const prepare = async (database: BenchDatabase) => {
		secrets = await fillWithKeys(database, WARM_UP + IN_USE);
	};
	const { gateway, stop } = await world.isolated("keys", { prepare });
	const { port } = gateway;
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const bytes = (nth: number) => chatRequestBytes(gateway, secrets[nth] as string, body);
	let at = 0;
	const warmUp = { port, connections: CONNECTIONS, request: () => bytes(at++ % WARM_UP) };
	// The heap grows to what the load needs with a few keys, so that what it grows by afterwards is the others'.
	await world.charged(gateway, () => runLoad({ ...warmUp, durationMs: world.mode.warmUpMs }));
	await Bun.sleep(SETTLE_MS);
	const before = residentBytes(gateway.pids());
	at = WARM_UP;
	const each = { port, connections: CONNECTIONS, request: () => bytes(at++), durationMs: 600_000, requestsMax: IN_USE };
	await world.charged(gateway, () => runLoad(each));
	await Bun.sleep(SETTLE_MS);
	const perKey = (residentBytes(gateway.pids()) - before) / IN_USE;
	figures.add("keys", "memory of a key in use", "bytes", "tollgate", perKey);
	await stop();
}
