import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ApiError } from "./http.ts";

/** Reading with a memory: a page seen before shows its last answer at once and asks again behind it. */

/** The oldest answers are forgotten beyond this many. */
const CACHED_MAX = 200;

interface Entry {
	data: unknown;
	error: ApiError | undefined;
	loading: boolean;
}

const EMPTY: Entry = Object.freeze({ data: undefined, error: undefined, loading: true });

/** What one browser tab knows; emptied when the viewer changes. */
function createResourceStore() {
	const entries = new Map<string, Entry>();
	const listeners = new Set<() => void>();
	const running = new Map<string, symbol>();

	function put(key: string, entry: Entry): void {
		entries.delete(key);
		entries.set(key, entry);
		const oldest = entries.keys().next();
		if (entries.size > CACHED_MAX && !oldest.done) entries.delete(oldest.value);
		for (const listener of listeners) listener();
	}

	return {
		get: (key: string): Entry => entries.get(key) ?? EMPTY,
		subscribe(listener: () => void) {
			listeners.add(listener);
			return () => void listeners.delete(listener);
		},
		/** Replaces an answer by a newer one that came another way. */
		set(key: string, change: (before: unknown) => unknown): void {
			const before = entries.get(key);
			if (before?.data !== undefined) put(key, { data: change(before.data), error: undefined, loading: false });
		},
		/** Reads it unless somebody is already reading it: two parts of a page want the same. */
		async need(key: string, fetcher: () => Promise<unknown>): Promise<void> {
			if (!running.has(key)) await this.load(key, fetcher);
		},
		/** Reads it anew: an answer that is under way may be older than what has just been changed. */
		async load(key: string, fetcher: () => Promise<unknown>): Promise<void> {
			const mark = Symbol(key);
			running.set(key, mark);
			put(key, { data: entries.get(key)?.data, error: undefined, loading: true });
			try {
				const data = await fetcher();
				if (running.get(key) === mark) put(key, { data, error: undefined, loading: false });
			} catch (error) {
				if (running.get(key) === mark) {
					put(key, { data: entries.get(key)?.data, error: asApiError(error), loading: false });
				}
			} finally {
				if (running.get(key) === mark) running.delete(key);
			}
		},
		clear(): void {
			entries.clear();
			running.clear();
			for (const listener of listeners) listener();
		},
	};
}

export const resources = createResourceStore();

export interface Resource<T> {
	readonly data: T | undefined;
	readonly error: ApiError | undefined;
	/** Also true while a shown answer is being renewed. */
	readonly loading: boolean;
	reload(): Promise<void>;
}

/** `key` names the answer; null reads nothing. Reads when shown and when the key changes. */
export function useResource<T>(key: string | null, fetcher: () => Promise<T>): Resource<T> {
	const latest = useRef(fetcher);
	latest.current = fetcher;
	const name = key ?? "";
	const entry = useSyncExternalStore(resources.subscribe, () => resources.get(name));
	const reload = useCallback(async () => {
		if (name !== "") await resources.load(name, () => latest.current());
	}, [name]);
	useEffect(() => {
		if (name !== "") void resources.need(name, () => latest.current());
	}, [name]);
	return { data: entry.data as T | undefined, error: entry.error, loading: entry.loading, reload };
}

export interface Action<A extends unknown[], T> {
	readonly run: (...args: A) => Promise<T | undefined>;
	readonly busy: boolean;
	readonly error: ApiError | undefined;
	clear(): void;
}

/** One change at a time: a second click while the first runs does nothing. Failures are kept to be shown. */
export function useAction<A extends unknown[], T>(act: (...args: A) => Promise<T>): Action<A, T> {
	const [state, setState] = useState<{ busy: boolean; error: ApiError | undefined }>({ busy: false, error: undefined });
	const busy = useRef(false);
	const latest = useRef(act);
	latest.current = act;
	const run = useCallback(async (...args: A) => {
		if (busy.current) return undefined;
		busy.current = true;
		setState({ busy: true, error: undefined });
		try {
			const result = await latest.current(...args);
			setState({ busy: false, error: undefined });
			return result;
		} catch (error) {
			setState({ busy: false, error: asApiError(error) });
			return undefined;
		} finally {
			busy.current = false;
		}
	}, []);
	const clear = useCallback(() => setState({ busy: false, error: undefined }), []);
	return { run, busy: state.busy, error: state.error, clear };
}

/** Pages of a list, joined; `more` fetches the next one. */
export function useList<T>(
	key: string,
	fetchPage: (after: string | null) => Promise<{ items: readonly T[]; next: string | null }>,
) {
	const first = useResource(key, () => fetchPage(null));
	const [rest, setRest] = useState<{ of: unknown; items: readonly T[]; next: string | null }>();
	const shown = rest !== undefined && rest.of === first.data ? rest : undefined;
	const next = shown ? shown.next : (first.data?.next ?? null);
	const more = useAction(async () => {
		if (next === null) return;
		const page = await fetchPage(next);
		setRest({ of: first.data, items: [...(shown?.items ?? []), ...page.items], next: page.next });
	});
	const items = first.data ? [...first.data.items, ...(shown?.items ?? [])] : undefined;
	return { items, next, more, error: first.error, loading: first.loading, reload: first.reload };
}

/**
 * Server-sent events of one topic; the browser reconnects by itself. Only while the page is looked at: a browser keeps
 * few connections to one address, and a row of forgotten tabs would use them up.
 */
export function useLive<T>(topic: "overview" | "operator", address: string, onData: (data: T) => void): boolean {
	const [connected, setConnected] = useState(false);
	const latest = useRef(onData);
	latest.current = onData;
	useEffect(() => {
		let source: EventSource | undefined;
		function open() {
			source = new EventSource(address);
			source.addEventListener("open", () => setConnected(true));
			source.addEventListener("error", () => setConnected(false));
			source.addEventListener(topic, (event) => {
				setConnected(true);
				latest.current(JSON.parse((event as MessageEvent<string>).data) as T);
			});
		}
		function close() {
			source?.close();
			source = undefined;
		}
		function follow() {
			if (document.visibilityState === "hidden") close();
			else if (!source) open();
		}
		follow();
		document.addEventListener("visibilitychange", follow);
		return () => {
			document.removeEventListener("visibilitychange", follow);
			close();
		};
	}, [topic, address]);
	return connected;
}

/** Ticks for ages on screen. */
export function useNow(everyMs = 30_000): number {
	const [now, setNow] = useState(() => Date.now());
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), everyMs);
		return () => clearInterval(timer);
	}, [everyMs]);
	return now;
}

function asApiError(error: unknown): ApiError {
	if (error instanceof ApiError) return error;
	return new ApiError("This page has a fault of its own. Reload it.", { status: 0, code: "page_fault" });
}
