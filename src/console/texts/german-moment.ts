/** Of `2027-01-31` or `2027-01-31T12:00:00Z`, in UTC; anything else as it is. */
export function germanMoment(text: string): string {
	const [, year, month, day, time] = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d:\d\d))?/.exec(text) ?? [];
	if (year === undefined) return text;
	return `${day}.${month}.${year}${time === undefined ? "" : ` um ${time} Uhr (UTC)`}`;
}
