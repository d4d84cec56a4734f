import { Button, NumberInput, Select, Textarea } from "@mantine/core";
import { useRef, useState } from "react";
import { api } from "../api.ts";
import { streamChat } from "../chat-stream.ts";
import { formatCount, formatDuration } from "../format.ts";
import type { ApiError } from "../http.ts";
import { CodeTabs } from "../parts/code.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { useAction, useResource } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { chatSnippets } from "../snippets.ts";
import type { KeyView, ModelView } from "../views.ts";

interface Turn {
	readonly id: number;
	readonly role: "user" | "assistant";
	readonly content: string;
	readonly thought?: string;
	readonly facts?: Facts;
	readonly error?: string;
}

interface Facts {
	readonly model: string;
	readonly requestId: string | null;
	readonly promptTokens: number | null;
	readonly completionTokens: number | null;
	readonly costUsd: number | null;
	readonly firstTokenMs: number | null;
	readonly totalMs: number;
	readonly stopped: boolean;
}

interface Settings {
	readonly system: string;
	readonly temperature: string;
	readonly topP: string;
	readonly maxTokens: string;
}

const START: Settings = { system: "", temperature: "", topP: "", maxTokens: "1024" };

export default function PlaygroundPage() {
	const account = useAccount();
	const [query, change] = useQueryState();
	const models = useResource("models", api.models);
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const [settings, setSettings] = useState(START);

	const usable = keys.data?.items.filter((key) => key.state === "active");
	const key = usable?.find((item) => item.id === query.get("key")) ?? usable?.[0];
	const offered = models.data?.items.filter((model) => model.modes.includes("chat") && allows(key, model));
	const model =
		offered?.find((item) => item.id === query.get("model")) ??
		offered?.find((item) => item.status === "connected") ??
		offered?.[0];

	if (usable?.length === 0) {
		return (
			<Page title="Playground">
				<Panel>
					<Empty
						title="A key is needed."
						action={
							<Button component={Link} to="/keys?create=1">
								Create a key
							</Button>
						}
					>
						Requests of the playground are charged to one of your keys, with its cap and its models.
					</Empty>
				</Panel>
			</Page>
		);
	}
	return (
		<Page
			title="Playground"
			lead="Charged to the key that is chosen, like any other request. Nothing that is typed here is stored."
		>
			{models.error && <Problem error={models.error} retry={() => void models.reload()} />}
			{keys.error && <Problem error={keys.error} retry={() => void keys.reload()} />}
			<div className="playground">
				<Conversation apiKey={key} model={model} settings={settings} />
				<Panel title="Request">
					<div className="form">
						<Select
							label="Model"
							data={offered?.map((item) => ({ value: item.id, label: item.name })) ?? []}
							searchable
							allowDeselect={false}
							value={model?.id ?? null}
							onChange={(value) => change({ model: value })}
						/>
						{model?.status === "unavailable" && <Notice kind="warn">This model is not connected right now.</Notice>}
						<Select
							label="Key"
							data={usable?.map((item) => ({ value: item.id, label: `${item.name} …${item.lastFour}` })) ?? []}
							allowDeselect={false}
							value={key?.id ?? null}
							onChange={(value) => change({ key: value })}
						/>
						<Parameters model={model} settings={settings} onChange={setSettings} />
					</div>
				</Panel>
			</div>
		</Page>
	);
}

function allows(key: KeyView | undefined, model: ModelView): boolean {
	return key === undefined || key.models.length === 0 || key.models.includes(model.id);
}

/** Only what the model honours is offered. */
function Parameters(props: {
	model: ModelView | undefined;
	settings: Settings;
	onChange: (settings: Settings) => void;
}) {
	const { settings, onChange } = props;
	const takes = (name: string) => props.model?.parameters.includes(name) ?? false;
	const set = (changes: Partial<Settings>) => onChange({ ...settings, ...changes });
	return (
		<>
			<Textarea
				label="System prompt"
				autosize
				minRows={2}
				maxRows={6}
				value={settings.system}
				onChange={(event) => set({ system: event.currentTarget.value })}
			/>
			{takes("temperature") && (
				<NumberInput
					label="Temperature"
					placeholder="The model's own"
					min={0}
					max={2}
					step={0.1}
					decimalScale={2}
					value={settings.temperature}
					onValueChange={(value) => set({ temperature: value.value })}
				/>
			)}
			{takes("top_p") && (
				<NumberInput
					label="Top p"
					placeholder="The model's own"
					min={0}
					max={1}
					step={0.05}
					decimalScale={2}
					value={settings.topP}
					onValueChange={(value) => set({ topP: value.value })}
				/>
			)}
			<NumberInput
				label="Tokens at most"
				min={1}
				max={props.model?.maxOutputTokens ?? 1_000_000}
				allowDecimal={false}
				value={settings.maxTokens}
				onValueChange={(value) => set({ maxTokens: value.value })}
			/>
		</>
	);
}

function Conversation({
	apiKey,
	model,
	settings,
}: {
	apiKey: KeyView | undefined;
	model: ModelView | undefined;
	settings: Settings;
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
	const body =
		model && bodyOf(model, turns.length > 0 ? turns.filter((turn) => turn.content !== "") : example(draft), settings);
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

function Transcript({ turns, busy }: { turns: readonly Turn[]; busy: boolean }) {
	if (turns.length === 0) {
		return (
			<div className="transcript">
				<Empty title="Ask something.">The answer streams in, with its tokens, speed and cost.</Empty>
			</div>
		);
	}
	return (
		<div className="transcript" role="log" aria-live="polite" aria-busy={busy} aria-label="Conversation">
			{turns.map((turn) => (
				<div key={turn.id} className={`message message-${turn.role}`}>
					<div className="message-who">{turn.role === "user" ? "You" : (turn.facts?.model ?? "Answer")}</div>
					{turn.thought && (
						<details>
							<summary className="small dim">Reasoning</summary>
							<div className="message-text dim">{turn.thought}</div>
						</details>
					)}
					<div className="message-text">
						{turn.content || (turn.facts ? <span className="dim">No text.</span> : <span className="dim">…</span>)}
					</div>
					{turn.error && <Notice kind="warn">{turn.error}</Notice>}
					{turn.facts && <TurnFacts facts={turn.facts} />}
				</div>
			))}
		</div>
	);
}

function TurnFacts({ facts }: { facts: Facts }) {
	const generatingMs = facts.totalMs - (facts.firstTokenMs ?? 0);
	const speed =
		facts.completionTokens !== null && facts.completionTokens > 1 && generatingMs > 0
			? `${formatCount(Math.round((facts.completionTokens / generatingMs) * 1000))} tokens/s`
			: undefined;
	const parts = [
		facts.stopped ? "stopped" : undefined,
		facts.promptTokens === null
			? undefined
			: `${formatCount(facts.promptTokens)} + ${formatCount(facts.completionTokens ?? 0)} tokens`,
		speed,
		facts.firstTokenMs === null ? undefined : `first token ${formatDuration(facts.firstTokenMs)}`,
		facts.costUsd === null ? undefined : `USD ${decimal(facts.costUsd)}`,
	].filter((part) => part !== undefined);
	return (
		<div className="message-who num">
			{parts.join(" · ")}
			{facts.requestId && <Link to={`/requests/${facts.requestId}`}>request</Link>}
		</div>
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
			costUsd: end.usage?.cost ?? null,
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

function bodyOf(model: ModelView, turns: readonly Pick<Turn, "role" | "content">[], settings: Settings): ChatBody {
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

function example(draft: string): readonly Pick<Turn, "role" | "content">[] {
	return [{ role: "user", content: draft.trim() || "Hello!" }];
}

function snippetsOf(baseUrl: string, body: ChatBody) {
	const { model, messages, ...options } = body;
	return chatSnippets({ baseUrl, model, messages, options, stream: true });
}

/** Never in powers of ten. */
const decimal = (usd: number): string => usd.toFixed(9).replace(/0{1,7}$/, "");
