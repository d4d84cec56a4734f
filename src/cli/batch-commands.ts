import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { Fault } from "../base/fault.ts";
import { newUuid } from "../base/id.ts";
import { type BatchClient, createBatchClient, inputLines, type RemoteBatch } from "./batch-client.ts";
import { type CommandContext, type CommandInput, type CommandOutput, type CommandRuns, UsageError } from "./command.ts";

/** Variable with the customer's API key. Not a command-line argument, which other users of the machine can see. */
const KEY_VARIABLE = "TOLLGATE_API_KEY";
const URL_VARIABLE = "TOLLGATE_URL";
const URL_DEFAULT = "http://127.0.0.1:8080";

const POLL_MS_MIN = 200;
const POLL_MS_MAX = 5_000;
/** Failed polls in a row, over about ten minutes, after which the command gives up. */
const FAILED_LOOKS_MAX = 120;
const OVER = new Set(["completed", "failed", "expired", "cancelled"]);
const BAR_CELLS = 24;
const END_SIGNALS = ["SIGINT", "SIGTERM"] as const;
/** Exit code that shells report after Ctrl-C. */
const EXIT_INTERRUPTED = 130;

/** State file from which an interrupted command continues. It contains no secret. */
interface Progress {
	readonly url: string;
	/** Digest of the input file and of the options with which the batch was created: changes of them are refused. */
	readonly of: string;
	readonly idempotencyKey: string;
	readonly inputFileId?: string;
	readonly batchId?: string;
}

export const batchCommands: CommandRuns = {
	async "batch run"(context, input) {
		const apiKey = context.env[KEY_VARIABLE];
		if (!apiKey) throw new UsageError(`set ${KEY_VARIABLE} to an API key of the service`);
		const given = input.option("url") ?? (context.env[URL_VARIABLE] || URL_DEFAULT);
		const url = given.replace(/\/+$/, "").replace(/\/v1$/, "");
		const client = createBatchClient({ url, apiKey });
		const batchId = await begin(context, client, url, input);
		const batch = await follow(context, client, batchId);
		return batch === undefined ? interrupted(batchId) : finish(client, batch, input);
	},
};

/** Returns the id of the batch that an interrupted earlier call created; creates the batch if there is none. */
async function begin(context: CommandContext, client: BatchClient, url: string, input: CommandInput): Promise<string> {
	const path = input.argument(0);
	const stat = statSync(path, { throwIfNoEntry: false });
	if (stat === undefined) throw new UsageError(`file ${path} does not exist`);
	if (!stat.isFile()) throw new UsageError(`${path} is not a file`);
	const endpoint = input.option("endpoint") ?? "/v1/chat/completions";
	const model = input.option("model");
	const of = JSON.stringify([stat.size, Math.floor(stat.mtimeMs), endpoint, model ?? null]);
	const place = `${path}.batch.json`;
	let progress = input.flag("new") ? undefined : readProgress(place);
	if (progress !== undefined && (progress.of !== of || progress.url !== url)) {
		// The upload was incomplete, so no batch exists yet, and the changed file can start one.
		if (progress.inputFileId === undefined) progress = undefined;
		else
			throw new Fault(
				"conflict",
				`${place} belongs to another batch: the file, the options or the service have changed. Use --new to start a new batch.`,
			);
	}
	progress ??= { url, of, idempotencyKey: newUuid() };
	const note = (more: Partial<Progress>) => {
		progress = { ...(progress as Progress), ...more };
		writeFileSync(`${place}.new`, `${JSON.stringify(progress)}\n`);
		renameSync(`${place}.new`, place);
	};
	if (progress.batchId !== undefined) return progress.batchId;
	note({});
	if (progress.inputFileId === undefined) {
		context.progress("uploading the file");
		note({ inputFileId: await client.upload(basename(path), inputLines(path, { endpoint, model })) });
	}
	const batchId = await client.create(progress.inputFileId ?? "", endpoint, progress.idempotencyKey);
	note({ batchId });
	return batchId;
}

function readProgress(place: string): Progress | undefined {
	if (!existsSync(place)) return undefined;
	try {
		return JSON.parse(readFileSync(place, "utf8")) as Progress;
	} catch {
		throw new Fault("conflict", `${place} is damaged. Use --new to start a new batch.`);
	}
}

/** Polls until the batch ends, and returns it. Undefined if a signal interrupted the command. */
async function follow(context: CommandContext, client: BatchClient, batchId: string): Promise<RemoteBatch | undefined> {
	const leave = Promise.withResolvers<undefined>();
	const onSignal = () => leave.resolve(undefined);
	for (const signal of END_SIGNALS) process.once(signal, onSignal);
	const looking = new AbortController();
	try {
		return await Promise.race([untilOver(context, client, batchId, looking.signal), leave.promise]);
	} finally {
		looking.abort();
		for (const signal of END_SIGNALS) process.off(signal, onSignal);
		context.progress("");
	}
}

async function untilOver(context: CommandContext, client: BatchClient, batchId: string, signal: AbortSignal) {
	let pauseMs = POLL_MS_MIN;
	let failures = 0;
	let pausedFor: string | undefined;
	while (!signal.aborted) {
		try {
			const batch = await client.find(batchId);
			failures = 0;
			if (OVER.has(batch.status) || signal.aborted) return batch;
			if (batch.paused !== null && batch.paused.message !== pausedFor) {
				context.progress("");
				context.note(pauseText(batch));
			}
			pausedFor = batch.paused?.message;
			context.progress(progressText(batch, Date.now()));
		} catch (error) {
			failures += 1;
			const mayPass = error instanceof Fault && (error.code === "service_unavailable" || error.code === "overloaded");
			if (!mayPass || failures > FAILED_LOOKS_MAX) throw error;
			context.progress(`${error.message} Retrying.`);
		}
		await Bun.sleep(pauseMs);
		pauseMs = Math.min(pauseMs * 1.5, POLL_MS_MAX);
	}
	return undefined;
}

/** Says why the batch is paused. Printed even without a progress bar. */
function pauseText({ paused, expires_at }: RemoteBatch): string {
	const until = new Date(expires_at * 1000).toISOString().slice(0, 16).replace("T", " ");
	return `paused: ${paused?.message} The batch continues when this is fixed, until ${until} UTC.`;
}

const interrupted = (batchId: string): CommandOutput => ({
	json: { batch: { id: batchId }, interrupted: true },
	text: `${batchId} keeps running. Run the same command again to follow it and download the results.`,
	exitCode: EXIT_INTERRUPTED,
});

/** Formats one status line: bar, progress, cost, remaining time. */
export function progressText(batch: RemoteBatch, nowMs: number): string {
	const { total, completed, failed } = batch.request_counts;
	if (total === 0) return `${batch.status}: validating the file`;
	const done = completed + failed;
	const cells = Math.floor((done / total) * BAR_CELLS);
	const bar = `${"█".repeat(cells)}${"░".repeat(BAR_CELLS - cells)}`;
	const parts = [`${bar} ${done} of ${total}`];
	if (failed > 0) parts.push(`${failed} failed`);
	parts.push(`USD ${batch.cost_usd}`);
	if (batch.paused !== null) parts.push("paused");
	else if (done > 0 && done < total && batch.in_progress_at !== null) {
		const leftS = ((nowMs / 1000 - batch.in_progress_at) / done) * (total - done);
		parts.push(
			leftS < 90 ? `about ${Math.max(1, Math.round(leftS))} s left` : `about ${Math.round(leftS / 60)} min left`,
		);
	}
	return parts.join(", ");
}

async function finish(client: BatchClient, batch: RemoteBatch, input: CommandInput): Promise<CommandOutput> {
	const path = input.argument(0);
	const output = input.option("out") ?? `${path}.output.jsonl`;
	const errors = `${path}.errors.jsonl`;
	if (batch.output_file_id !== null) await client.download(batch.output_file_id, output);
	if (batch.error_file_id !== null) await client.download(batch.error_file_id, errors);
	const { total, completed, failed } = batch.request_counts;
	const lines = [
		`${batch.id} is ${batch.status}: ${completed} of ${total} answered, ${failed} failed, USD ${batch.cost_usd}`,
	];
	if (batch.output_file_id !== null) lines.push(`answers: ${output}`);
	if (batch.error_file_id !== null) lines.push(`failed lines: ${errors}`);
	for (const { line, message } of batch.errors?.data ?? [])
		lines.push(line === null ? message : `line ${line}: ${message}`);
	if (batch.status !== "completed") lines.push("Run the command with --new to start a new batch.");
	return {
		json: {
			batch,
			output: batch.output_file_id === null ? null : output,
			errors: batch.error_file_id === null ? null : errors,
		},
		text: lines.join("\n"),
		exitCode: batch.status === "completed" && failed === 0 ? 0 : 1,
	};
}
