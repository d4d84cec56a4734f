/** Rejects as soon as `signal` aborts, without waiting for the work: a database may take minutes to fail. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
	const aborted = Promise.withResolvers<never>();
	const give = () => aborted.reject(signal.reason);
	if (signal.aborted) give();
	else signal.addEventListener("abort", give, { once: true });
	try {
		return await Promise.race([work, aborted.promise]);
	} finally {
		// Removes the listener, because the signal may live much longer than the work.
		signal.removeEventListener("abort", give);
	}
}
