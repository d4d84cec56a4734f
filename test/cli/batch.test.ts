import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inputLines, type RemoteBatch } from "../../src/cli/batch-client.ts";
import { progressText } from "../../src/cli/batch-commands.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { withBatches } from "../batch/batch-service.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { reply } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { PROGRAM } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

const { service, upstream } = await withBatches();
const { secret } = await service.customer();
const folder = temporaryFolder();
const env = { TOLLGATE_API_KEY: secret, TOLLGATE_URL: service.url };
const run = (path: string, ...more: string[]) => runHere(["batch", "run", path, "--model", "test-model", ...more], env);

function inputOf(name: string, lines: readonly unknown[]): string {
	const path = join(folder, name);
	writeFileSync(path, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
	return path;
}
const outputOf = (path: string) =>
	readFileSync(path, "utf8")
		.trim()
		.split("\n")
		.map((line) => JSON.parse(line) as { custom_id: string; response: { status_code: number } | null });
const body = (content: string) => ({ max_tokens: 8, messages: [{ role: "user", content }] });

describe("the command `tollgate batch run`", () => {
	test("sends a file, saves its answers, and starts no second batch if it is repeated", async () => {
		const whole = { custom_id: "mine", method: "POST", url: "/v1/chat/completions", body: body("two") };
		const path = inputOf("plain.jsonl", [body("one"), "", whole]);
		const first = await run(path, "--json");
		expect([first.exitCode, first.stderr]).toEqual([0, ""]);
		const { batch, output } = first.json();
		expect([batch.status, output]).toEqual(["completed", `${path}.output.jsonl`]);
		const answers = outputOf(output);
		expect(answers.map(({ custom_id }) => custom_id).sort()).toEqual(["line-1", "mine"]);
		expect(answers.map(({ response }) => response?.status_code)).toEqual([200, 200]);
		const asked = upstream.requests.length;
		const again = await run(path, "--json");
		expect(again.json().batch.id).toBe(batch.id);
		expect(upstream.requests.length).toBe(asked);
		expect(readFileSync(`${path}.batch.json`, "utf8")).not.toContain(secret);
		writeFileSync(path, JSON.stringify(body("three")));
		expect((await run(path)).stderr).toContain("--new");
		const renewed = await run(path, "--json", "--new");
		expect(renewed.json().batch.id).not.toBe(batch.id);
	}, 60_000);

	test("sends the numbers of a line with all their digits", async () => {
		const path = join(folder, "numbers.jsonl");
		const plain = '{"max_tokens":8,"seed":9007199254740993,"messages":[{"role":"user","content":"one"}]}';
		const whole = `{"custom_id":"w","body":${plain.replace('"seed"', '"top_p":1.0,"seed"')}}`;
		writeFileSync(path, `${plain}\n${whole}\n`);
		const lines = [];
		for await (const line of inputLines(path, { endpoint: "/v1/chat/completions", model: "m" })) lines.push(line);
		expect(lines.map((line) => line.includes('"seed":9007199254740993,'))).toEqual([true, true]);
		expect(lines[1]).toContain('"top_p":1.0,');
		expect(lines.map((line) => JSON.parse(line).body.model)).toEqual(["m", "m"]);
	});

	test("continues an interrupted upload, batch or download if it is repeated", async () => {
		const path = inputOf("resumed.jsonl", [body("one")]);
		const { batch } = (await run(path, "--json")).json();
		const output = `${path}.output.jsonl`;
		const whole = readFileSync(output, "utf8");
		const half = `${output}.part-${batch.output_file_id}`;
		writeFileSync(half, whole.slice(0, 20));
		expect((await run(path)).exitCode).toBe(0);
		expect([readFileSync(output, "utf8"), existsSync(half)]).toEqual([whole, false]);
	}, 60_000);

	test("reports failed lines, an invalid file and a key without the right to batches", async () => {
		const failing = inputOf("failing.jsonl", [body("one"), { ...body("two"), n: -1 }]);
		const failed = await run(failing);
		expect([failed.exitCode, failed.stdout]).toEqual([1, expect.stringContaining("1 failed")]);
		expect(outputOf(`${failing}.errors.jsonl`).map(({ custom_id }) => custom_id)).toEqual(["line-2"]);
		const broken = await run(inputOf("broken.jsonl", [body("one"), "no json"]));
		expect([broken.exitCode, broken.stderr]).toEqual([1, "error: Line 2 is not a JSON object.\n"]);
		const path = inputOf("nobody.jsonl", [body("one")]);
		const nobody = await runHere(["batch", "run", path], {
			TOLLGATE_URL: service.url,
			TOLLGATE_API_KEY: "sk_service_x",
		});
		expect([nobody.exitCode, nobody.stderr]).toEqual([1, expect.stringContaining("error: ")]);
		expect((await runHere(["batch", "run", path], {})).exitCode).toBe(2);
		expect((await run(join(folder, "none"))).exitCode).toBe(2);
		const directory = await run(folder);
		expect([directory.exitCode, directory.stderr]).toEqual([2, expect.stringContaining("is not a file")]);
		const unknown = await run(inputOf("unknown.jsonl", [{ ...body("one"), model: "none" }]));
		expect([unknown.exitCode, unknown.stdout]).toEqual([1, expect.stringContaining("--new")]);
	}, 60_000);

	test("accepts a corrected file and a file with a byte order mark", async () => {
		const path = inputOf("mended.jsonl", [body("one"), "no json"]);
		expect((await run(path)).exitCode).toBe(1);
		writeFileSync(path, `\uFEFF${JSON.stringify(body("one"))}\r\n`);
		const mended = await run(path);
		expect([mended.exitCode, mended.stderr]).toEqual([0, ""]);
	}, 60_000);

	test("prints on an interrupt that the batch continues, and follows it if repeated", async () => {
		const gate = Promise.withResolvers<void>();
		upstream.next(reply().text("an answer").behind(gate.promise));
		const path = inputOf("interrupted.jsonl", [body("one")]);
		const sent = upstream.requests.length;
		const command = ["batch", "run", path, "--model", "test-model"];
		const child = Bun.spawn([...PROGRAM, ...command], {
			env: { PATH: Bun.env.PATH ?? "", ...env },
			stdout: "pipe",
			stderr: "pipe",
		});
		await waitFor(() => upstream.requests.length > sent, "the line to be under way", 30_000);
		await waitFor(() => readFileSync(`${path}.batch.json`, "utf8").includes("batchId"), "it to know its batch");
		child.kill("SIGINT");
		expect(await child.exited).toBe(130);
		expect(await new Response(child.stdout).text()).toMatch(/^batch_\w+ keeps running/);
		gate.resolve();
		expect((await run(path)).exitCode).toBe(0);
		expect(upstream.requests.length).toBe(sent + 1);
	}, 60_000);

	test("prints why a batch pauses if there is no progress bar", async () => {
		const { secret } = await service.customer({ settings: { capNanoUsd: nanoUsd(1) } });
		const path = inputOf("poor.jsonl", [body("one")]);
		const child = Bun.spawn([...PROGRAM, "batch", "run", path, "--model", "test-model"], {
			env: { PATH: Bun.env.PATH ?? "", ...env, TOLLGATE_API_KEY: secret },
			stdout: "pipe",
			stderr: "pipe",
		});
		let said = "";
		for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
			said += piece;
			if (said.includes("\n")) break;
		}
		expect(said).toMatch(/^paused: .*cap.* The batch continues when this is fixed, until .* UTC\.\n$/);
		child.kill("SIGTERM");
		expect(await child.exited).toBe(130);
	}, 60_000);
});

test("shows progress, cost and remaining time in its progress bar", () => {
	const batch: RemoteBatch = {
		id: "batch_1",
		status: "in_progress",
		output_file_id: null,
		error_file_id: null,
		in_progress_at: 1_000,
		expires_at: 90_000,
		request_counts: { total: 400, completed: 98, failed: 2 },
		errors: null,
		paused: null,
		cost_usd: "0.25",
	};
	expect(progressText(batch, 1_100_000)).toBe(
		"██████░░░░░░░░░░░░░░░░░░ 100 of 400, 2 failed, USD 0.25, about 5 min left",
	);
	expect(progressText({ ...batch, paused: { message: "no credit" } }, 1_100_000)).toEndWith("USD 0.25, paused");
	expect(progressText({ ...batch, request_counts: { total: 0, completed: 0, failed: 0 } }, 0)).toContain(
		"validating the file",
	);
});
