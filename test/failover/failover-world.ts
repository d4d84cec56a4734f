import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { batchModel } from "../batch/batch-service.ts";
import { type SentRequest, sendChat, uuidOf } from "../chaos/chat-client.ts";
import { startCountingUpstream } from "../chaos/counting-upstream.ts";
import { type Fleet, type FleetMember, startFleet } from "../chaos/fleet.ts";
import { costOf } from "../chaos/verdict.ts";
import { waitFor } from "../support/wait.ts";
import { startServerPair } from "./servers.ts";

export type FailoverWorld = Awaited<ReturnType<typeof startFailoverWorld>>;

export async function startFailoverWorld(
	options: {
		settings?: Readonly<Record<string, string>>;
		env?: Readonly<Record<string, string>>;
		/** Number of processes of each instance (WORKERS). */
		workers?: number;
		/** Also serves batches, each of whose answers takes up to this many milliseconds. */
		batchAnswerMs?: number;
	} = {},
) {
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
	const ask = async (key: { id: string; secret: string }, member: FleetMember) => {
		const sent = await sendChat(member, key, { words: 4, stream: true, maxTokens: 12 });
		if (sent.complete) answered.push(sent);
		return sent;
	};
	const readiness = async (member: FleetMember) =>
		(await fetch(`${member.url}/readyz`)).json() as Promise<
			Record<"status", string> & Record<"reasons" | "warnings", string[]>
		>;
	return {
		servers,
		fleet,
		upstream,
		members: [first, second] as const,
		ask,
		/** Sends requests with the key until each instance has answered `count` of them. */
		async serve(key: { id: string; secret: string }, count: number) {
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
		/** Directs new connections of the instances (by default all) to this server. Existing connections stay. */
		aim(server: { readonly port: number }, members: readonly FleetMember[] = fleet.members) {
			for (const { proxy } of members) proxy.aim(server.port);
		},
		readiness,
		/** Waits until both instances are ready and have replayed all journals. */
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
		/** Expects the books to contain every complete answer once, at the price of the tokens that the upstream counted. */
		async expectNothingLost(sql: Fleet["sql"]) {
			const arrivals = await upstream.report();
			const truth = new Map(arrivals.map(({ requestId, prompt, sent }) => [uuidOf(requestId), costOf(prompt, sent)]));
			const due = answered.map(({ uuid = "" }) => [uuid, truth.get(uuid) ?? -1]);
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
		log: ({ logPath }: FleetMember) => readFileSync(logPath, "utf8"),
		async [Symbol.asyncDispose]() {
			await fleet.stop();
			await upstream.stop();
			await servers.destroy();
		},
	};
}
