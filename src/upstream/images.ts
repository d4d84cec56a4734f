/** Image generation: sends a request and returns images, without URLs of the operator's network. */
import { isIP } from "node:net";
import { createTimeSlice } from "../base/time-slice.ts";
import type { CallContext } from "./call/attempt.ts";
import { unreadableAnswer } from "./call/failure.ts";
import type { UnaryCall } from "./call/unary.ts";
import type { Replica } from "./replicas/replica.ts";
import { type ReportedUsage, readUsage } from "./usage.ts";
import { asArray, asObject, asText, type JsonObject } from "./wire-value.ts";

export interface ImageRequest {
	readonly prompt: string;
	readonly n: number;
	readonly fields: Readonly<Record<string, unknown>>;
}

export type GeneratedImage = ({ readonly b64_json: string } | { readonly url: string }) & {
	readonly revised_prompt?: string;
};

export interface ImageReply {
	readonly images: readonly GeneratedImage[];
	readonly usage: ReportedUsage | undefined;
}

const ANSWER_BYTES_MAX = 256 * 1024 * 1024;
/** Characters of base64 that are checked in one step. */
const PIECE_CHARS = 1024 * 1024;
const BASE64 = /^[A-Za-z0-9+/]*$/;
const BASE64_END = /^[A-Za-z0-9+/]*={0,2}$/;

export const imageCall = ({ prompt, n, fields }: ImageRequest, context: CallContext): UnaryCall<ImageReply> => ({
	context,
	run: (ask, replica) =>
		ask.post({
			path: "/images/generations",
			body: JSON.stringify({ ...fields, model: replica.spec().model, prompt, ...(n > 1 ? { n } : {}) }),
			bytesMax: ANSWER_BYTES_MAX,
			read: (parsed) => readImages(parsed, replica, n),
		}),
});

/** Drops images beyond `n`, because the customer did not pay for them. */
async function readImages(parsed: unknown, replica: Replica, n: number): Promise<ImageReply> {
	const body = asObject(parsed);
	const items = asArray(body?.data);
	if (items === undefined || items.length === 0) throw unreadableAnswer("an answer without images");
	const images: GeneratedImage[] = [];
	for (const raw of items.slice(0, n)) images.push(await imageOf(asObject(raw), replica));
	return { images, usage: readUsage(body?.usage) };
}

async function imageOf(item: JsonObject | undefined, replica: Replica): Promise<GeneratedImage> {
	const revised = asText(item?.revised_prompt);
	const more = revised === undefined ? {} : { revised_prompt: revised };
	const base64 = asText(item?.b64_json) ?? base64OfDataUrl(asText(item?.url));
	if (base64 !== undefined) {
		if (!(await isBase64(base64))) throw unreadableAnswer("an image that is not base64");
		return { b64_json: base64, ...more };
	}
	const url = asText(item?.url);
	if (url === undefined || !isPublic(url, replica))
		throw unreadableAnswer("an image without content or public address");
	return { url, ...more };
}

function base64OfDataUrl(url: string | undefined): string | undefined {
	const head = /^data:image\/[\w.+-]{1,40};base64,/.exec(url?.slice(0, 64) ?? "")?.[0];
	return head === undefined ? undefined : url?.slice(head.length);
}

async function isBase64(text: string): Promise<boolean> {
	const timeSlice = createTimeSlice();
	if (text === "" || text.startsWith("=")) return false;
	let at = 0;
	for (; at + PIECE_CHARS < text.length; at += PIECE_CHARS) {
		if (!BASE64.test(text.slice(at, at + PIECE_CHARS))) return false;
		if (timeSlice.isOver()) await timeSlice.next();
	}
	return BASE64_END.test(text.slice(at));
}

/** True if the URL is https with a domain name other than the model server's, so that it reveals no internal host. */
function isPublic(text: string, replica: Replica): boolean {
	const url = URL.parse(text);
	if (url === null || url.protocol !== "https:" || url.username !== "" || url.password !== "") return false;
	const { hostname } = url;
	if (isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0 || !hostname.includes(".")) return false;
	return (
		!/\.(local|internal|lan|home|localhost)\.?$/.test(hostname) && hostname !== new URL(replica.spec().url).hostname
	);
}
