import { QueryClient, useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError, pageFault } from "./http.ts";

/** Cached reads: a page that was shown before shows its last data at once while it refreshes. */

/** Cache of this tab. It is emptied when the viewer changes. */
const memory = new QueryClient({
	defaultOptions: {
		queries: {
			// Time in ms for which data of closed pages stays in the cache.
			gcTime: 5 * 60_000,
			// No automatic retry: the page shows the error with a retry button.
			retry: false,
			// Reads even if the browser reports no internet, because the service may be in the local network.
			networkMode: "always",
			refetchOnWindowFocus: false,
		},
	},
});

export const resourceCache = {
	/** Changes cached data, for example with data of the live feed. */
	set(key: string, change: (before: unknown) => unknown): void {
		memory.setQueryData([key], (before: unknown) => (before === undefined ? undefined : change(before)));
	},
	clear: () => memory.clear(),
};

export interface Resource<T> {
	readonly data: T | undefined;
	readonly error: ApiError | undefined;
	/** True while data is loaded or refreshed. */
	readonly loading: boolean;
	reload(): Promise<void>;
}

/** Returns the milliseconds from a response to the next poll; false: no polling. */
type Poll<T> = (data: T | undefined) => number | false;

/** Reads through the cache when mounted, when `key` changes, and as `poll` says. A `key` of null reads nothing. */
export function useResource<T>(
	key: string | null,
	fetcher: () => Promise<T>,
	poll: Poll<T> = () => false,
): Resource<T> {
	const { data, error, isFetching, refetch } = useQuery<T, ApiError>(
		{
			queryKey: [key],
			enabled: key !== null,
			refetchInterval: ({ state }) => poll(state.data),
			queryFn: () =>
				fetcher().catch((failure) => {
					throw asApiError(failure);
				}),
		},
		memory,
	);
	const reload = useCallback(async () => {
		if (key === null) return;
		// Cancels a read in progress, which may return data from before the change.
		await memory.cancelQueries({ queryKey: [key], exact: true });
		await refetch();
	}, [key, refetch]);
	return { data, error: error ?? undefined, loading: isFetching, reload };
}

export interface Action<A extends unknown[], T> {
	readonly run: (...args: A) => Promise<T | undefined>;
	readonly busy: boolean;
	readonly error: ApiError | undefined;
	clear(): void;
}

/** Runs one action at a time, then `after`: a second click until both end has no effect. Keeps the last error for display. */
export function useAction<A extends unknown[], T>(
	act: (...args: A) => Promise<T>,
	after?: () => unknown,
): Action<A, T> {
	const [state, setState] = useState<{ busy: boolean; error: ApiError | undefined }>({ busy: false, error: undefined });
	const busy = useRef(false);
	const latest = useRef({ act, after });
	latest.current = { act, after };
	const run = useCallback(async (...args: A) => {
		if (busy.current) return undefined;
		busy.current = true;
		setState({ busy: true, error: undefined });
		try {
			const now = latest.current;
			const result = await withPasswordAgain(() => now.act(...args));
			await now.after?.();
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

export type List<T> = ReturnType<typeof useList<T>>;

interface ListPage<T> {
	readonly items: readonly T[];
	readonly next: string | null;
}

/** Returns the list of all loaded pages; `more` loads the next page. */
export function useList<T>(
	key: string,
	fetchPage: (after: string | null) => Promise<ListPage<T>>,
	poll?: Poll<ListPage<T>>,
) {
	const first = useResource(key, () => fetchPage(null), poll);
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

/** Browsers reconnect after a broken event stream, but not after an error status such as 502: this code does. */
const FEED_AGAIN_MS = 5_000;

/**
 * Subscribes to server-sent events while the page is visible: browsers limit connections per host, and hidden tabs
 * would use them up.
 */
export function useLive<T>(topic: "overview" | "operator", address: string, onData: (data: T) => void): boolean {
	const [connected, setConnected] = useState(false);
	const latest = useRef(onData);
	latest.current = onData;
	useEffect(() => {
		let source: EventSource | undefined;
		let again: ReturnType<typeof setTimeout> | undefined;
		function open() {
			source = new EventSource(address);
			source.addEventListener("open", () => setConnected(true));
			source.addEventListener("error", () => {
				setConnected(false);
				if (source?.readyState === EventSource.CLOSED) again = setTimeout(open, FEED_AGAIN_MS);
			});
			source.addEventListener(topic, (event) => {
				setConnected(true);
				latest.current(JSON.parse((event as MessageEvent<string>).data) as T);
			});
		}
		function close() {
			clearTimeout(again);
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

/** Returns the current time, updated every `everyMs` ms, for relative times. */
export function useNow(everyMs = 30_000): number {
	const [now, setNow] = useState(() => Date.now());
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), everyMs);
		return () => clearInterval(timer);
	}, [everyMs]);
	return now;
}

const asApiError = (error: unknown): ApiError => (error instanceof ApiError ? error : pageFault());

/** Repeats an action after the user has entered the password again. All pages share one dialog. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** Pending result of the open dialog; undefined while it is closed. */
let asked: Promise<boolean> | undefined;

/** Registers the function that opens the dialog. Its promise resolves to true if the password was entered. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// The promise of a dialog that was removed from the page never resolves, so no action may await it.
	asked = undefined;
}

/** Runs `act`; runs it again if the server required the password and the user entered it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await askOnce(ask))) throw error;
		return act();
	}
}

/** Opens the dialog, or awaits the open one: several refused actions share one dialog. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
