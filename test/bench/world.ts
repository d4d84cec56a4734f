/** All parts of a benchmark run, started in order and stopped in reverse order. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "../packaging/build-binary.ts";
import { startBaseline } from "./baseline.ts";
import type { UpstreamCount } from "./fast-upstream.ts";
import type { Gateway } from "./gateways.ts";
import { startBare, startNginx, startPortPrinter } from "./gateways.ts";
import type { BenchDatabase } from "./product.ts";
import { chargeOf, startBenchPostgres, startProduct } from "./product.ts";
import { chatRequestBytes } from "./raw-connection.ts";

export interface BenchMode {
	readonly quick: boolean;
	readonly windowMs: number;
	readonly warmUpMs: number;
	readonly rounds: number;
	/** Path of another checkout, or of a binary, to measure in the same rounds. */
	readonly baseline: string | undefined;
}

export type World = Awaited<ReturnType<typeof build>>;

/** A condition that must hold for the figures to be valid. */
export interface Check {
	readonly name: string;
	readonly ok: boolean;
	readonly detail: string;
}

export interface Answers {
	readonly failures: number;
	readonly firstFailure: string | undefined;
}

const KEYS = 8;
const CUT_OFF_WAITS = 100;
export const NO_COUNT: Served = { requests: 0, prompt: 0, completion: 0 };

export async function startWorld(mode: BenchMode, say: (line: string) => void) {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
	// Stops the product and compares its books with the model server's count.
	chmodSync(folder, 0o755);
	const ends: (() => Promise<unknown> | unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
	const runEnds = async () => {
		for (const end of ends.splice(0).reverse()) await end();
	};
	try {
		return await build(mode, folder, say, ends, runEnds);
	} catch (error) {
		await runEnds();
		throw error;
	}
}

async function build(
	mode: BenchMode,
	folder: string,
	say: (line: string) => void,
	ends: (() => Promise<unknown> | unknown)[],
	runEnds: () => Promise<void>,
) {
	const keep = <T extends { stop(): unknown } | undefined>(part: T): T => {
		if (part) ends.push(() => part.stop());
		return part;
	};
	say("building");
	const command = [await buildBinary(join(folder, "tollgate"))];
	say("starting Postgres, upstream and gateways");
	const bench = keep(await startBenchPostgres(join(folder, "postgres")));
	const upstreamArgv = [process.execPath, join(import.meta.dir, "fast-upstream.ts")];
	const upstream = keep(await startPortPrinter("the upstream", upstreamArgv));
	const checks: Check[] = [];
	const served = new Map<Gateway, Served>();
	const upstreamCount = async () =>
		(await (await fetch(`http://127.0.0.1:${upstream.port}/count`)).json()) as UpstreamCount;

	/** Starts a database and a process for one scenario. */
	async function isolated(name: string) {
		const database = await bench.database(`bench_${name}`);
		ends.push(() => database.close());
		const { secrets } = await database.customer(KEYS);
		const gateway = await startProduct({
			command,
			databaseUrl: database.url,
			upstreamPort: upstream.port,
			folder: join(folder, name),
		});
		ends.push(() => gateway.stop());
		return {
			gateway,
			database,
			secrets,
			/** Stops the process and compares its books with the model server's count of the work inside `charged`. */
			async stop() {
				await gateway.stop();
				checks.push(...(await checkBooks(name, database, served.get(gateway) ?? NO_COUNT)));
			},
		};
	}

	const first = await isolated("main");
	const product = first.gateway;
	const bare = keep(await startBare(upstream.port, first.secrets));
	const readingFloor = keep(await startBare(upstream.port, first.secrets, true));
	const nginx = keep(await startNginx(upstream.port, join(folder, "nginx")));
	const baseline =
		mode.baseline === undefined
			? undefined
			: await startBaseline({
					path: mode.baseline,
					databaseUrl: await bench.emptyDatabase("bench_baseline"),
					upstreamPort: upstream.port,
					folder,
					keys: KEYS,
				});
	keep(baseline?.gateway);
	const gateways = [bare, nginx, baseline?.gateway, product].filter((gateway) => gateway !== undefined);
	return {
		mode,
		folder,
		upstreamPort: upstream.port,
		postgres: bench,
		database: first.database,
		secrets: first.secrets,
		/** The reference gateways and the product, in the order of a round. */
		gateways,
		product,
		/** The reference for reading every event of a stream; measured for streams only. */
		readingFloor,
		checks,
		upstreamCount,
		isolated,
		/** Returns the request bytes for each connection. Each connection has its own key. */
		requests(gateway: Gateway, body: string) {
			const secrets = gateway === baseline?.gateway ? baseline.secrets : first.secrets;
			const all = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
			return (connection: number) => all[connection % all.length] as Uint8Array;
		},
		/** Runs `work`. For the product, also compares the model server's count with the books. */
		async charged<T extends Answers>(gateway: Gateway, work: () => Promise<T>): Promise<T> {
			const before = await upstreamCount();
			const result = await work();
			// The model server still runs aborted requests for a moment; they must not count for the next gateway.
			const { open } = before;
			for (let wait = 0; wait < CUT_OFF_WAITS && (await upstreamCount()).open > open; wait++) await Bun.sleep(20);
			served.set(gateway, plusDifference(served.get(gateway) ?? NO_COUNT, before, await upstreamCount()));
			const detail = result.failures === 0 ? "none" : `${result.failures}, first: ${result.firstFailure}`;
			checks.push({ name: `failures of ${gateway.name}`, ok: result.failures === 0, detail });
			return result;
		},
		/** Stops the product and compares its books with the model server's count. */
		async stop() {
			try {
				await first.stop();
			} finally {
				await runEnds();
			}
		},
	};
}

type Served = Pick<UpstreamCount, "requests" | "prompt" | "completion">;

export function plusDifference(sum: Served, before: Served, after: Served): Served {
	return {
		requests: sum.requests + after.requests - before.requests,
		prompt: sum.prompt + after.prompt - before.prompt,
		completion: sum.completion + after.completion - before.completion,
	};
}

async function checkBooks(name: string, database: BenchDatabase, served: Served): Promise<Check[]> {
	const books = await database.books();
	return [
		{
			name: `${name}: every request that the upstream served is in Postgres`,
			ok: books.requests === served.requests,
			detail: `${books.requests} of ${served.requests}`,
		},
		{
			name: `${name}: the sum of all charges is the upstream's own count at the model's rates`,
			ok: books.charged === chargeOf(served),
			detail: `${books.charged} nano-dollars, ${chargeOf(served)} by count`,
		},
		{
			name: `${name}: the books reconcile`,
			ok: books.reconciled,
			detail: books.broken.join("; ") || "all checks hold",
		},
	];
}
