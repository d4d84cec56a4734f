/**
 * The floor of each part of a request's way: a pass-through that does STEPS of what a gateway with a ledger must do, and
 * nothing else. What stands between the last of them and the product is the product's own; what stands between two is
 * what the runtime asks for that part.
 *
 *     STEPS=3 UPSTREAM=http://127.0.0.1:9000/v1 bun test/bench/floor.ts       prints `{"port":…}`; FLOOR_STEPS names them
 */
import { openSync, writeSync } from "node:fs";

export const FLOOR_STEPS = [
	"an answer at once, no model server",
	"bodies passed on as bytes",
	"+ both bodies read as text and parsed",
	"+ both bodies written anew",
	"+ two journal records of 200 bytes",
	"+ deadline and signals of client and model server",
	"+ ids and headers of an own answer",
	"+ a settlement's text kept for 100 ms, then written in one piece",
];

const TYPE = { "content-type": "application/json" };

export function startFloor(steps: number, upstream: string): { port: number; stop(): void } {
	const does = (step: number) => steps >= step;
	const record = Buffer.alloc(200, "r");
	const [journal, rows] = [openSync(process.env.JOURNAL_FILE ?? "/dev/null", "a"), openSync("/dev/null", "a")];
	const settled: string[] = [];
	const flush = setInterval(() => settled.length > 0 && writeSync(rows, settled.splice(0).join("\n")), 100);
	const server = Bun.serve({
		hostname: "127.0.0.1",
		port: 0,
		idleTimeout: 0,
		maxRequestBodySize: 64 * 1024 * 1024,
		development: false,
		async fetch(request) {
			if (!does(1)) return new Response('{"choices":[]}', { headers: TYPE });
			const { signal } = does(5) ? request : { signal: null };
			const own = does(5) ? new AbortController() : null;
			if (own) signal?.addEventListener("abort", () => own.abort(), { once: true });
			const deadline = own && setTimeout(() => own.abort(), 600_000);
			const text = does(2) ? await request.text() : await request.arrayBuffer();
			const parsed = does(2) ? JSON.parse(text as string) : null;
			if (does(4)) writeSync(journal, record);
			const body = does(3) ? JSON.stringify(parsed) : text;
			const answer = await fetch(upstream, { method: "POST", headers: TYPE, body, signal: own?.signal ?? null });
			if (!does(2)) return new Response(answer.body, { headers: TYPE });
			const answerText = await answer.text();
			const reply = JSON.parse(answerText);
			if (deadline) clearTimeout(deadline);
			if (does(4)) writeSync(journal, record);
			if (does(7))
				settled.push(JSON.stringify({ ...reply.usage, id: crypto.randomUUID(), at: Date.now(), key: "key_1" }));
			const id = does(6) ? crypto.randomUUID() : "";
			const headers = does(6) ? { ...TYPE, "x-request-id": id, "cache-control": "no-store", "x-model": "m" } : TYPE;
			return new Response(does(3) ? JSON.stringify(does(6) ? { ...reply, id } : reply) : answerText, { headers });
		},
	});
	return {
		port: server.port as number,
		stop() {
			clearInterval(flush);
			void server.stop(true);
		},
	};
}

if (import.meta.main) {
	const { port } = startFloor(Number(process.env.STEPS), `${process.env.UPSTREAM}/chat/completions`);
	process.stdout.write(`${JSON.stringify({ port })}\n`);
}
