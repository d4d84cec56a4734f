import { Button, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { api } from "../api.ts";
import { streamChat } from "../chat-stream.ts";
import type { ApiError } from "../http.ts";
import { CodeTabs } from "../parts/code.tsx";
import { Panel } from "../parts/page.tsx";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { chatSnippets } from "../snippets.ts";
import type { KeyView, ModelView } from "../views.ts";
import type { Turn } from "./playground-transcript.tsx";
import { Transcript } from "./playground-transcript.tsx";

/** As typed; empty leaves the choice to the model. */
export interface ChatSettings {
	readonly system: string;
	readonly temperature: string;
	readonly topP: string;
	readonly maxTokens: string;
}

export function Conversation({
	apiKey,
	model,
	settings,
}: {
	apiKey: KeyView | undefined;
	model: ModelView | undefined;
	settings: ChatSettings;
}) {
	const account = useAccount();
	const { config } = useSession();
	const [turns, setTurns] = useState<readonly Turn[]>([]);
	const [draft, setDraft] = useState("");
	const [showCode, setShowCode] = useState(false);
	const stop = useRef<AbortController>(undefined);
	const counter = useRef(0);

	const ask = useAction(async () => {
		const text = draft.trim();
		if (text === "" || !model || !apiKey) return;
		const before = [...turns, { id: ++counter.current, role: "user", content: text } as const];
		const id = ++counter.current;
		setTurns([...before, { id, role: "assistant", content: "" }]);
		setDraft("");
		stop.current = new AbortController();
		const put = (changes: Partial<Turn>) =>
			setTurns((now) => now.map((turn) => (turn.id === id ? { ...turn, ...changes } : turn)));
		try {
			await answer({
				address: api.playgroundAddress(account.id, apiKey.id),
				body: bodyOf(model, before, settings),
				model: model.id,
				signal: stop.current.signal,
				put,
			});
		} catch (error) {
			// What was refused is not part of the conversation; the text is given back.
			setTurns(turns);
			setDraft(text);
			throw error;
		}
	});
	const body = model && bodyOf(model, turns.length > 0 ? asked(turns) : example(draft), settings);
	return (
		<Panel
			title="Conversation"
			aside={
				<>
					<Button size="xs" variant="default" onClick={() => setShowCode(!showCode)} aria-pressed={showCode}>
						{showCode ? "Hide the code" : "Show as code"}
					</Button>
					<Button size="xs" variant="default" disabled={turns.length === 0 || ask.busy} onClick={() => setTurns([])}>
						Clear
					</Button>
				</>
			}
		>
			<div className="stack">
				<Transcript turns={turns} busy={ask.busy} />
				{ask.error && <AskProblem error={ask.error} />}
				<form
					className="form"
					onSubmit={(event) => {
						event.preventDefault();
						void ask.run();
					}}
				>
					<Textarea
						aria-label="Your message"
						placeholder="Message; Enter sends, Shift+Enter starts a line"
						autosize
						minRows={2}
						maxRows={10}
						data-search
						value={draft}
						onChange={(event) => setDraft(event.currentTarget.value)}
						onKeyDown={(event) => {
							if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
								event.preventDefault();
								void ask.run();
							}
						}}
					/>
					<div className="form-end">
						{ask.busy ? (
							<Button variant="default" onClick={() => stop.current?.abort()}>
								Stop
							</Button>
						) : (
							<Button type="submit" disabled={draft.trim() === "" || !model || !apiKey}>
								Send
							</Button>
						)}
					</div>
				</form>
				{showCode && body && <CodeTabs snippets={snippetsOf(config.baseUrl, body)} />}
			</div>
		</Panel>
	);
}

/** 402 and the like explain themselves in the service's own words; what to do stands below. */
function AskProblem({ error }: { error: ApiError }) {
	return (
		<div className="stack">
			<Problem error={error} />
			{error.status === 402 && (
				<p className="small">
					<Link to="/credit">See the credit</Link>, or lower the tokens at most.
				</p>
			)}
		</div>
	);
}

async function answer(options: {
	address: string;
	body: Record<string, unknown>;
	model: string;
	signal: AbortSignal;
	put: (changes: Partial<Turn>) => void;
}): Promise<void> {
	const startMs = performance.now();
	let firstTokenMs: number | null = null;
	let content = "";
	let thought = "";
	const end = await streamChat(options.address, options.body, options.signal, (text, kind) => {
		firstTokenMs ??= performance.now() - startMs;
		if (kind === "answer") content += text;
		else thought += text;
		options.put(thought === "" ? { content } : { content, thought });
	});
	options.put({
		...(end.error === undefined ? {} : { error: end.error }),
		facts: {
			model: options.model,
			requestId: end.requestId,
			promptTokens: end.usage?.promptTokens ?? null,
			completionTokens: end.usage?.completionTokens ?? null,
			costNanoUsd: end.usage?.costNanoUsd ?? null,
			firstTokenMs,
			totalMs: performance.now() - startMs,
			stopped: options.signal.aborted,
		},
	});
}

interface ChatBody extends Record<string, unknown> {
	readonly model: string;
	readonly messages: readonly { readonly role: string; readonly content: string }[];
}

function bodyOf(model: ModelView, turns: readonly Pick<Turn, "role" | "content">[], settings: ChatSettings): ChatBody {
	const takes = (name: string) => model.parameters.includes(name);
	const system = settings.system.trim();
	const messages = turns.map(({ role, content }) => ({ role, content }));
	return {
		model: model.id,
		messages: system === "" ? messages : [{ role: "system", content: system }, ...messages],
		...(takes("temperature") && settings.temperature !== "" ? { temperature: Number(settings.temperature) } : {}),
		...(takes("top_p") && settings.topP !== "" ? { top_p: Number(settings.topP) } : {}),
		...(settings.maxTokens === "" ? {} : { max_tokens: Number(settings.maxTokens) }),
	};
}

/** What the last request sent: the conversation up to the last question. */
function asked(turns: readonly Turn[]): readonly Turn[] {
	return turns.slice(0, turns.findLastIndex((turn) => turn.role === "user") + 1);
}

function example(draft: string): readonly Pick<Turn, "role" | "content">[] {
	return [{ role: "user", content: draft.trim() || "Hello!" }];
}

function snippetsOf(baseUrl: string, body: ChatBody) {
	const { model, messages, ...options } = body;
	return chatSnippets({ baseUrl, model, messages, options, stream: true });
}
