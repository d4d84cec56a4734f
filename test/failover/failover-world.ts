import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { batchModel } from "../batch/batch-service.ts";
import { type SentRequest, sendChat } from "../chaos/chat-client.ts";
import { type CountingUpstream, startCountingUpstream } from "../chaos/counting-upstream.ts";
import { type Fleet, type FleetMember, startFleet } from "../chaos/fleet.ts";
import { waitFor } from "../support/wait.ts";
import { type ServerPair, startServerPair } from "./servers.ts";

export interface FailoverWorld extends AsyncDisposable {
	readonly servers: ServerPair;
	readonly fleet: Fleet;
	readonly upstream: CountingUpstream;
	readonly members: readonly [FleetMember, FleetMember];
	/** Sends requests with the key until each instance has answered `count` of them. */
	serve(key: { id: string; secret: string }, count: number): Promise<void>;
	ask(key: { id: string; secret: string }, member: FleetMember): Promise<SentRequest>;
	/** Directs new connections of the instances (by default all) to this server. Existing connections stay. */
	aim(server: { readonly port: number }, members?: readonly FleetMember[]): void;
	readiness(member: FleetMember): Promise<{ status: string; reasons: string[]; warnings: string[] }>;
	/** Waits until both instances are ready and have replayed all journals. */
	untilReady(): Promise<void>;
	/** Expects the books to contain every complete answer once, at the price of the tokens that the upstream counted. */
	expectNothingLost(sql: Fleet["sql"]): Promise<void>;
	log(member: FleetMember): string;
}

const PRICE = { prompt: 1_000, output: 2_000 };

export async function startFailoverWorld(
	options: {
		settings?: Readonly<Record<string, string>>;
		env?: Readonly<Record<string, string>>;
		/** Number of processes of each instance (WORKERS). */
		workers?: number;
		/** Also serves batches, each of whose answers takes up to this many milliseconds. */
		batchAnswerMs?: number;
	} = {},
): Promise<FailoverWorld> {
	const servers = await startServerPair(options.settings);
	const upstream = await startCountingUpstream({ gapMsMax: options.batchAnswerMs ?? 1, failures: 0 });
	const fleet = await startFleet({
		databaseUrl: servers.primary.url,
		upstreamUrl: upstream.url,
		instances: 2,
		...(options.batchAnswerMs === undefined
			? {}
			: { model: `${batchModel(upstream.url, { dialect: "vllm" })}\n        max_concurrency: 512` }),
		...(options.env === undefined ? {} : { env: options.env }),
	});
	const [first, second] = fleet.members as [FleetMember, FleetMember];
	const answered: SentRequest[] = [];
	const ask: FailoverWorld["ask"] = async (key, member) => {
		const sent = await sendChat(member, key, { words: 4, stream: true, maxTokens: 12 });
		if (sent.complete) answered.push(sent);
		return sent;
	};
	const readiness: FailoverWorld["readiness"] = async (member) => (await fetch(`${member.url}/readyz`)).json();
	return {
		servers,
		fleet,
		upstream,
		members: [first, second],
		ask,
		async serve(key, count) {
			for (let number = 0; number < count; number++)
				// Repeats a request after a 503, as clients should.
				for (const member of [first, second])
					await waitFor(
						async () => {
							const { status } = await ask(key, member);
							if (status !== 200) expect(status).toBe(503);
							return status === 200;
						},
						"an answer",
						30_000,
					);
		},
		aim(server, members = fleet.members) {
			for (const { proxy } of members) proxy.aim(server.port);
		},
		readiness,
		async untilReady() {
			await waitFor(
				async () => (await Promise.all(fleet.members.map(readiness))).every(({ status }) => status === "ready"),
				"both members to be ready",
				30_000,
			);
			await waitFor(
				() => fleet.members.every((member) => member.journals().length <= (options.workers ?? 1)),
				"the journals",
				30_000,
			);
		},
		async expectNothingLost(sql) {
			const truth = new Map(
				(await upstream.report()).map(({ requestId, prompt, sent }) => [
					requestId.replaceAll("-", ""),
					prompt * PRICE.prompt + sent * PRICE.output,
				]),
			);
			const due = answered.map(({ uuid = "" }) => [uuid, truth.get(uuid.replaceAll("-", "")) ?? -1]);
			const ids = answered.map(({ uuid = "" }) => uuid);
			const booked = async () => {
				const rows = await sql`
					select request_id, charged_nano_usd + written_off_nano_usd as cost from usage_event where request_id = any (${ids}::uuid[])`;
				return new Map(rows.map((row) => [String(row.request_id), Number(row.cost)]));
			};
			await waitFor(async () => (await booked()).size === ids.length, `${ids.length} answers in the books`, 20_000);
			const found = await booked();
			expect(due.map(([id]) => [id, found.get(String(id))])).toEqual(due);
		},
		log: ({ logPath }) => readFileSync(logPath, "utf8"),
		async [Symbol.asyncDispose]() {
			await fleet.stop();
			await upstream.stop();
			await servers.destroy();
		},
	};
}
