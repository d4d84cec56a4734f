import type { Tool, ToolValues } from "../../src/web/snippets/tools.ts";
import { chatModel, type TestService } from "../support/service.ts";
import { reply, type UpstreamServer } from "../support/upstream-server.ts";
import type { Outcome } from "./play-tool.ts";

/** A customer who follows the instructions of the console's pages, with checks of the result. */

export const MODEL = "llama-3.3-70b-instruct";
export const ANSWER = "The Rhine, the Rhône and the Danube.";
const QUESTION = "Name three rivers of Europe.";

export function catalogue(upstream: UpstreamServer): string {
	upstream.always(() => reply().text(ANSWER));
	return chatModel({ id: MODEL, url: upstream.url, dialect: "vllm" });
}

export const factsFor = (service: TestService, apiKey: string): ToolValues => ({
	baseUrl: `${service.url}/v1`,
	model: MODEL,
	apiKey,
	serviceName: "Tollgate",
	question: QUESTION,
});

/** The text of the answer in the tool's output; for curl, assembled from the raw events. */
export function saidBy(tool: Tool, { out }: Outcome): string {
	if (tool.id !== "curl") return out.includes(ANSWER) ? ANSWER : out;
	const events = out.split("\n").filter((line) => line.startsWith("data: {"));
	return events.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? "").join("");
}

/** True if the account was charged for exactly one streamed answer, by the server's count. */
export async function isChargedOnce(service: TestService, accountId: string): Promise<boolean> {
	await service.settled();
	const [row, ...more] = await service.usage(accountId);
	const ofStream = { model: MODEL, streamed: true, basis: "exact", ending: "finished" };
	const isOfStream = Object.entries(ofStream).every(
		([name, value]) => (row as Record<string, unknown>)?.[name] === value,
	);
	return more.length === 0 && isOfStream && Number(row?.charged_nano_usd) > 0;
}
