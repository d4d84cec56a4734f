/** Rejects with its reason once `signal` aborts, whatever becomes of the work: a database may take minutes to say no. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
	const aborted = Promise.withResolvers<never>();
	const give = () => aborted.reject(signal.reason);
	if (signal.aborted) give();
	else signal.addEventListener("abort", give, { once: true });
	return Promise.race([work, aborted.promise]);
}
