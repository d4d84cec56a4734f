/**
 * How the price of a request grows: with the customers in the database and in memory, with the size of the prompt, with
 * streams that are open beside it, with instances on one database.
 */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { openIdleStreams } from "./idle-streams.ts";
import type { LoadResult } from "./load.ts";
import { runLoad } from "./load.ts";
import { fillWithKeys } from "./population.ts";
import { cpuMicros, residentBytes } from "./process-usage.ts";
import type { BenchDatabase } from "./product.ts";
import { startProduct } from "./product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { Isolated, World } from "./world.ts";

/** Keys, each of an account of its own, and how many of them this instance has in memory. */
const POPULATIONS = [1, 10_000, 1_000_000];
const IN_MEMORY_MAX = 20_000;
const PROMPT_BYTES = [200, 1_000, 10_000, 100_000, 1_000_000];
const OPEN_STREAMS = [0, 1_000, 5_000];
const INSTANCES = [1, 2];
const CONNECTIONS = 32;
const NAME = "CPU per request";
const UNIT = "µs";

export async function growth(world: World, figures: Figures): Promise<void> {
	await withCustomers(world, figures);
	const one = await world.isolated("growth");
	await withPrompt(world, figures, one);
	await withStreams(world, figures, one);
	await withInstances(world, figures, one);
	await one.stop();
}

/** One measured load on `gateway`, after a warm-up; the rounds of the mode. */
async function measure(
	world: World,
	figures: Figures,
	gateway: Gateway,
	row: string,
	request: (connection: number) => Uint8Array,
	connections = CONNECTIONS,
): Promise<void> {
	for (let round = 0; round <= world.mode.rounds; round++) {
		const { micros, requests } = await load(world, gateway, request, connections, round === 0);
		if (round > 0) figures.add("growth", NAME, UNIT, row, micros / requests);
	}
}

async function load(
	world: World,
	gateway: Gateway,
	request: (connection: number) => Uint8Array,
	connections: number,
	warmUp: boolean,
): Promise<LoadResult & { micros: number }> {
	let before = 0;
	const begin = () => {
		before = cpuMicros(gateway.pids());
	};
	const durationMs = warmUp ? world.mode.warmUpMs : world.mode.windowMs;
	const options = { port: gateway.port, connections, request, durationMs, begin };
	const result = await world.charged(gateway, () => runLoad(options));
	return { ...result, micros: cpuMicros(gateway.pids()) - before };
}

function turns(gateway: Gateway, secrets: readonly string[], body: string): () => Uint8Array {
	let at = 0;
	return () => {
		at = at + 1 >= secrets.length ? 0 : at + 1;
		return chatRequestBytes(gateway, secrets[at] as string, body);
	};
}

async function withCustomers(world: World, figures: Figures): Promise<void> {
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const populations = world.mode.quick ? POPULATIONS.slice(0, 2) : POPULATIONS;
	for (const population of populations) {
		let secrets: readonly string[] = [];
		const prepare = async (database: BenchDatabase) => {
			secrets = await fillWithKeys(database, population);
		};
		const one = await world.isolated(`customers${population}`, { prepare });
		const inMemory = secrets.slice(0, IN_MEMORY_MAX);
		const next = turns(one.gateway, inMemory, body);
		const before = residentBytes(one.gateway.pids());
		// Every key once: from now on this instance knows it.
		const all = { port: one.gateway.port, connections: CONNECTIONS, request: next, durationMs: 3_600_000 };
		await world.charged(one.gateway, () => runLoad({ ...all, requestsMax: inMemory.length }));
		// As the database does by itself within a minute; until then its plans are those of empty tables.
		await one.database.sql`analyze`;
		const perKey = (residentBytes(one.gateway.pids()) - before) / inMemory.length;
		const row = `${population.toLocaleString("en-US")} key${population === 1 ? "" : "s"} in Postgres, ${inMemory.length.toLocaleString("en-US")} in use`;
		await measure(world, figures, one.gateway, row, next);
		if (population > 1) figures.add("growth", "memory per key in use", "bytes", row, perKey);
		await one.stop();
	}
}

async function withPrompt(world: World, figures: Figures, one: Isolated): Promise<void> {
	for (const bytes of PROMPT_BYTES) {
		const row = `prompt of ${bytes.toLocaleString("en-US")} bytes`;
		const all = one.secrets.map((secret) => chatRequestBytes(one.gateway, secret, chatBody("plain", bytes)));
		const request = (connection: number) => all[connection % all.length] as Uint8Array;
		await measure(world, figures, one.gateway, row, request, bytes > 100_000 ? 8 : CONNECTIONS);
	}
}

async function withStreams(world: World, figures: Figures, one: Isolated): Promise<void> {
	const request = turns(one.gateway, one.secrets, chatBody("plain", SMALL_PROMPT_BYTES));
	for (const streams of OPEN_STREAMS) {
		const idle = turns(one.gateway, one.secrets, streamBody("idle"));
		const group = await openIdleStreams(one.gateway.port, streams, idle);
		await measure(world, figures, one.gateway, `${streams.toLocaleString("en-US")} open streams beside`, request);
		// The streams end inside a counted piece of work, so that their charges are expected.
		await world.charged(one.gateway, async () => {
			await fetch(`http://127.0.0.1:${world.upstreamPort}/release`, { method: "POST" });
			if (streams > 0) await group.ended();
			return { failures: 0, firstFailure: undefined };
		});
	}
}

/** The same customers on further instances over one database: what one of them pays while all are under load. */
async function withInstances(world: World, figures: Figures, one: Isolated): Promise<void> {
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	for (const instances of INSTANCES) {
		const others: Gateway[] = [];
		for (let index = 1; index < instances; index++) {
			others.push(
				await startProduct({
					command: world.command,
					databaseUrl: one.database.url,
					upstreamPort: world.upstreamPort,
					folder: `${world.folder}/instance${index}`,
				}),
			);
		}
		const all = [one.gateway, ...others];
		for (let round = 0; round <= world.mode.rounds; round++) {
			// Counted once for all of them: their books are the same.
			await world.charged(one.gateway, async () => {
				const results = await Promise.all(
					all.map(async (gateway) => {
						const before = cpuMicros(gateway.pids());
						const durationMs = round === 0 ? world.mode.warmUpMs : world.mode.windowMs;
						const request = turns(gateway, one.secrets, body);
						const result = await runLoad({
							port: gateway.port,
							connections: CONNECTIONS / instances,
							request,
							durationMs,
						});
						return { ...result, micros: cpuMicros(gateway.pids()) - before };
					}),
				);
				const requests = results.reduce((sum, result) => sum + result.requests, 0);
				const micros = results.reduce((sum, result) => sum + result.micros, 0);
				const row = `${instances} instance${instances === 1 ? "" : "s"} on one database`;
				if (round > 0) figures.add("growth", NAME, UNIT, row, micros / requests);
				const failed = results.find((result) => result.failures > 0);
				return failed ?? { failures: 0, firstFailure: undefined };
			});
		}
		for (const gateway of others) await gateway.stop();
	}
}
