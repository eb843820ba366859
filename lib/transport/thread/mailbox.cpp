#include "mailbox.hpp"

namespace baton::threads {

Mailbox::Queue& Mailbox::queue_of(int source, int tag) {
  const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32 |
                   static_cast<std::uint32_t>(tag);
  return queues_[static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - queue_bits))];
}

void Mailbox::append(Entry& entry) {
  Queue& queue = queue_of(entry.source, entry.tag);
  entry.next = nullptr;
  (queue.last == nullptr ? queue.first : queue.last->next) = &entry;
  queue.last = &entry;
}

void Mailbox::unlink(Queue& queue, Entry* before, Entry& entry) {
  (before == nullptr ? queue.first : before->next) = entry.next;
  if (queue.last == &entry) queue.last = before;
  entry.state.store(State::copying, std::memory_order_relaxed);
}

Entry* Mailbox::take(int source, int tag, bool recv) {
  Queue& queue = queue_of(source, tag);
  for (Entry *before = nullptr, *e = queue.first; e != nullptr; before = e, e = e->next)
    if (e->source == source && e->tag == tag && (e->side == Side::recv) == recv) {
      unlink(queue, before, *e);
      return e;
    }
  return nullptr;
}

bool Mailbox::remove(Entry& entry) {
  if (entry.state.load(std::memory_order_relaxed) != State::waiting) return false;
  Queue& queue = queue_of(entry.source, entry.tag);
  Entry* before = nullptr;
  for (Entry* e = queue.first; e != &entry; e = e->next) before = e;
  unlink(queue, before, entry);
  return true;
}

void Mailbox::remove_all(int source, bool receives) {
  for (Queue& queue : queues_)
    for (Entry *before = nullptr, *e = queue.first; e != nullptr; e = e->next)
      if (e->side == Side::recv ? receives : e->side == Side::send && e->source == source)
        unlink(queue, before, *e);
      else
        before = e;
}

void Mailbox::age() {
  for (Queue& queue : queues_)
    for (Entry* e = queue.first; e != nullptr; e = e->next)
      if (e->side != Side::recv && e->arrival > 0) --e->arrival;
}

Mailbox::Pair Mailbox::take_pair() {
  for (Queue& queue : queues_)
    for (Entry* recv = queue.first; recv != nullptr; recv = recv->next) {
      if (recv->side != Side::recv) continue;
      // Only the oldest send of (source, tag) counts, arrived or not, to keep the order.
      Entry* send = queue.first;
      while (send != nullptr &&
             (send->side == Side::recv || send->source != recv->source || send->tag != recv->tag))
        send = send->next;
      if (send == nullptr || send->arrival > 0) continue;
      return {take_send(recv->source, recv->tag), take_recv(recv->source, recv->tag)};
    }
  return {};
}

}  // namespace baton::threads
