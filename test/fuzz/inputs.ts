import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { chatBodyText, completionBodyText } from "../priced/body-text.ts";
import type { Random } from "../support/random.ts";
import { wavOf } from "../support/upstream-endpoints.ts";
import { mutated } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

/** A request as client libraries send it: valid framing, random content. */
export interface Input {
	readonly path: string;
	readonly contentType: string;
	readonly body: Uint8Array<ArrayBuffer>;
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text));
const JSON_TARGETS = TARGETS.filter(({ request }) => !(request() instanceof FormData));
const JSON_TYPES = [
	"application/json",
	"application/json; charset=utf-16",
	"application/vnd.api+json",
	"text/plain",
	"x",
];
const sample = <T>(arbitrary: fc.Arbitrary<T>, random: Random): T =>
	fc.sample(arbitrary, { seed: random.int(1, 2 ** 31), numRuns: 1 })[0] as T;
const anyValue = fc.jsonValue({ maxDepth: 4 });

export function jsonInput(random: Random): Input {
	const contentType = random.chance(0.05) ? random.pick(JSON_TYPES) : "application/json";
	const { path, request } = random.pick(JSON_TARGETS);
	const of = (text: string, at = path): Input => {
		const bytes = bytesOf(text);
		return { path: at, contentType, body: random.chance(0.25) ? mutated(bytes, random) : bytes };
	};
	const body = request() as Record<string, unknown>;
	switch (random.int(0, 5)) {
		case 0:
			return of(sample(chatBodyText, random).replace("test-model", "chat"), "/v1/chat/completions");
		case 1:
			return of(sample(completionBodyText, random).replace("test-model", "chat"), "/v1/completions");
		case 2: {
			const field = random.pick(Object.keys(body));
			return of(JSON.stringify({ ...body, [field]: sample(anyValue, random) }));
		}
		case 3: {
			const field = random.pick(Object.keys(body));
			return of(JSON.stringify(body).replace(/\}$/, `,"${field}":${JSON.stringify(sample(anyValue, random))}}`));
		}
		case 4: {
			const deep = random.int(1, 300);
			const open = random.pick(["[", '{"a":', '[{"content":']);
			const field = random.pick([...Object.keys(body), "made_up"]);
			return of(JSON.stringify(body).replace(/\}$/, `,"${field}":${open.repeat(deep)}1}`));
		}
		default: {
			const many = random.int(1, 4_000);
			const piece = random.pick([
				'"\\ud800",',
				"1e400,",
				"{},",
				'"\\u0000",',
				'{"role":"user","content":null},',
				"-0,",
			]);
			const field = random.pick([...Object.keys(body), "stop", "tools", "logit_bias"]);
			return of(JSON.stringify(body).replace(/\}$/, `,"${field}":[${piece.repeat(many)}1]}`));
		}
	}
}

const HEADERS = [
	'Content-Disposition: form-data; name="file"; filename="a.wav"',
	'Content-Disposition: form-data; name="model"',
	"Content-Disposition: form-data",
	"Content-Disposition: form-data; name=\"file\"; filename*=UTF-8''%ff%00",
	'Content-Disposition: attachment; name="model"; name="file"',
	'Content-Disposition: form-data; name="timestamp_granularities[]"',
	'Content-Disposition: form-data; name="__proto__"',
	'Content-Disposition: form-data; name="prompt"\r\nContent-Type: text/plain; charset=utf-16',
	'Content-Disposition: form-data; name="file"; filename="../../\u202e.wav"\r\nContent-Transfer-Encoding: base64',
];

/** Forms with unnamed parts, false boundaries, and files instead of fields. */
export function formInput(random: Random): Input {
	const boundary = random.pick(["b", "----x", `"quoted b"`, "b".repeat(70), "b".repeat(300), "é", "", "b; c=d"]);
	const part = (header: string, value: Buffer) =>
		Buffer.concat([Buffer.from(`--${boundary}\r\n${header}\r\n\r\n`), value, Buffer.from("\r\n")]);
	const wav = Buffer.from(wavOf(1));
	const parts = [part(HEADERS[0] as string, wav), part(HEADERS[1] as string, Buffer.from("audio"))];
	for (let more = random.int(0, 6); more > 0; more -= 1)
		parts.push(
			part(
				random.pick(HEADERS),
				random.pick([wav, Buffer.from("audio"), Buffer.from(`--${boundary}`), Buffer.alloc(random.int(0, 5_000), 0)]),
			),
		);
	const end = random.pick([`--${boundary}--\r\n`, `--${boundary}--`, "", `--${boundary}`, "\r\n\r\n"]);
	const whole = Buffer.concat([...random.shuffled(parts), Buffer.from(end)]);
	return {
		path: "/v1/audio/transcriptions",
		contentType: random.chance(0.9) ? `multipart/form-data; boundary=${encodeURI(boundary)}` : "multipart/form-data",
		body: random.chance(0.4) ? mutated(whole, random) : new Uint8Array(whole),
	};
}

const FOLDER = join(import.meta.dir, "../gateway/transcriptions/recordings");
const RECORDINGS = readdirSync(FOLDER).map((name) => ({ name, bytes: readFileSync(join(FOLDER, name)) }));

/** Audio recordings of each format, changed in headers, frames and ends. */
export function audioInput(random: Random): { readonly form: FormData; readonly bytes: Uint8Array } {
	const { name, bytes } = random.pick(RECORDINGS);
	const changed = mutated(bytes, random);
	const form = new FormData();
	form.append("model", random.pick(["audio", "audio-tokens"]));
	form.append("file", new File([changed], random.chance(0.8) ? name : "talk.mp3"));
	if (random.chance(0.2)) form.append("stream", "true");
	if (random.chance(0.3)) form.append("response_format", random.pick(["srt", "vtt", "text", "verbose_json"]));
	return { form, bytes: changed };
}
