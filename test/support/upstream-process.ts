/**
 * The echoing upstream as a process for chaos tests and benchmarks: `bun test/support/upstream-process.ts --port 0
 * --dialect vllm --gap-ms 5 --words 100` prints `{"port":…,"url":…}` and runs until killed.
 */
import { parseArgs } from "node:util";
import type { DialectName } from "../../src/catalog/model.ts";
import { reply, startUpstream } from "./upstream-server.ts";

const { values } = parseArgs({
	options: {
		port: { type: "string", default: "0" },
		dialect: { type: "string", default: "openai" },
		"gap-ms": { type: "string", default: "0" },
		/** Answers with so many words instead of the echo. */
		words: { type: "string" },
	},
});

const upstream = startUpstream({ port: Number(values.port), dialect: values.dialect as DialectName });
upstream.always(() => {
	const answer = reply().trickle(Number(values["gap-ms"]));
	return values.words === undefined
		? answer
		: answer.text(Array.from({ length: Number(values.words) }, (_, at) => ` word${at}`));
});
console.log(JSON.stringify({ port: upstream.port, url: upstream.url }));
